/** CloudFront: a function that names the object in S3, one that gives it its headers, and how to set up the rest. */
import { type Answer, refusalAnswer } from "../../../shared/answer.ts";
import { routeNotFound } from "../../../shared/refusal.ts";
import type { Edge, EdgeFile } from "../edge.ts";
import { fileHeaders, type Headers, preflightHeaders } from "../headers.ts";
import { foldersOf, readCore, readHost, withoutComments, writeScript } from "../script.ts";
import { sections } from "../text.ts";

/** Bytes of a function, by CloudFront's quotas. */
const MAX_FUNCTION = 10_240;

/** Throws where the function would be larger than CloudFront takes. */
export function cloudfrontFiles(edge: Edge): EdgeFile[] {
  const values = {
    APPS: foldersOf(edge),
    PREFLIGHT_HEADERS: headersOf(preflightHeaders()),
    NOT_FOUND: responseOf(refusalAnswer(routeNotFound(), null)),
  };
  const parts = [readHost("cloudfront-request"), readCore()].map(withoutComments);
  const request = writeScript(
    ["Viewer request, cloudfront-js-2.0. Made by `precast edge cloudfront`: see setup.txt."],
    values,
    parts,
  );
  const response = writeScript(
    ["Viewer response, cloudfront-js-2.0. Made by `precast edge cloudfront`: see setup.txt."],
    { FILE_HEADERS: headersOf(fileHeaders(edge.policy)) },
    [readHost("cloudfront-response")],
  );
  needRoom(request, edge.apps.length);
  return [
    { name: "setup.txt", text: sections([SETUP(edge)]) },
    { name: "viewer-request.js", text: request },
    { name: "viewer-response.js", text: response },
  ];
}

function needRoom(text: string, apps: number): void {
  const size = Buffer.byteLength(text);
  if (size <= MAX_FUNCTION) return;
  throw new Error(
    `With ${apps} apps the function for CloudFront has ${size} bytes, and CloudFront takes ${MAX_FUNCTION}. ` +
      "Name fewer apps with --app, and give each part of them a distribution.",
  );
}

function responseOf({ status, headers, body }: Answer): object {
  return {
    statusCode: status,
    statusDescription: "Not Found",
    headers: headersOf(headers),
    body: { encoding: "text", data: body },
  };
}

/** As CloudFront functions have headers. */
function headersOf(headers: Headers): Record<string, { value: string }> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), { value }]));
}

const SETUP = ({
  origin,
  apps,
}: Edge) => `A Precast tree in S3 behind CloudFront, and \`precast serve\` for everything else.

 1. The bucket holds the tree, its .precast folder left out, with these as the first folders:
${apps.map(({ folder }) => `      ${folder}/`).join("\n")}
    It stays private: CloudFront reads it through an origin access control, with s3:GetObject and nothing else.
 2. The server is at ${origin.origin} and runs with --tree-paths (PRECAST_TREE_PATHS=true): what the bucket
    lacks, CloudFront asks it for under the path in the bucket, with the key and the query of the request.
 3. One origin group: the bucket first, the server second, failover at 403, 404, 500, 502, 503 and 504. A bucket says
    403 for what it lacks.
 4. One behaviour, for all paths:
      allowed methods        GET, HEAD, OPTIONS
      cache policy           the header X-App-Key and all query strings in the key; minimum TTL 0
      origin request policy  AllViewerExceptHostHeader
      viewer request         viewer-request.js, runtime cloudfront-js-2.0
      viewer response        viewer-response.js, runtime cloudfront-js-2.0
 5. No response headers policy: it would give the headers of files to counted answers, too. The second function tells
    them apart.

CloudFront reads Cache-Control of objects and answers and no CDN-Cache-Control: give the objects the Cache-Control that
CloudFront is to keep them by, or set the default TTL. Other methods CloudFront refuses itself. ETags of files are the bucket's.
What is no file of the tree asks the bucket in vain first. When an app is added, make the functions again.
Whether CloudFront hands a path to its functions exactly as it was sent is not documented; it is compared as it is handed over.`;
