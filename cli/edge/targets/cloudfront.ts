/** Writes two CloudFront functions and how to install them: one names the object in S3, the other sets its headers. */
import { type Answer, refusalAnswer } from "../../../shared/answer.ts";
import { routeNotFound } from "../../../shared/refusal.ts";
import type { Edge, EdgeFile } from "../edge.ts";
import { fileHeaders, type Headers, preflightHeaders } from "../headers.ts";
import { foldersOf, readCore, readHost, withoutComments, writeScript } from "../script.ts";
import { sections } from "../text.ts";

/** Maximum size of a function in bytes (CloudFront's quotas). */
const MAX_FUNCTION = 10_240;

export function cloudfrontFiles(edge: Edge): EdgeFile[] {
  const withKeys = requestFunction(foldersOf(edge));
  const fits = Buffer.byteLength(withKeys) <= MAX_FUNCTION;
  return [
    { name: "setup.txt", text: sections([setup(edge, fits)]) },
    { name: "viewer-request.js", text: fits ? withKeys : requestFunction(null) },
    { name: "viewer-response.js", text: responseFunction(edge) },
  ];
}

/** `folders` is null for a function that knows no app keys: it uses the folder of whatever key is sent. */
function requestFunction(folders: Readonly<Record<string, string>> | null): string {
  const values = {
    APPS: folders,
    PREFLIGHT_HEADERS: headersOf(preflightHeaders()),
    NOT_FOUND: responseOf(refusalAnswer(routeNotFound(), null)),
  };
  const head = "Viewer request, cloudfront-js-2.0. Made by `precast edge cloudfront`: see setup.txt.";
  return writeScript([head], values, [readHost("cloudfront-request"), readCore()].map(withoutComments));
}

function responseFunction({ policy }: Edge): string {
  const head = "Viewer response, cloudfront-js-2.0. Made by `precast edge cloudfront`: see setup.txt.";
  return writeScript([head], { FILE_HEADERS: headersOf(fileHeaders(policy)) }, [readHost("cloudfront-response")]);
}

function responseOf({ status, headers, body }: Answer): object {
  return {
    statusCode: status,
    statusDescription: "Not Found",
    headers: headersOf(headers),
    body: { encoding: "text", data: body },
  };
}

/** The headers in the form that CloudFront functions have. */
function headersOf(headers: Headers): Record<string, { value: string }> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), { value }]));
}

function setup({ origin, apps }: Edge, fits: boolean): string {
  return `A Precast tree in S3 behind CloudFront, and \`precast serve\` for everything else.

 1. The bucket holds the tree, its .precast folder left out, one folder an app:
${apps.map(({ key, folder }) => `      ${folder}/  is ${key}`).join("\n")}
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
What is no file of the tree asks the bucket in vain first. When an app is added, make ${fits ? "the functions again" : NO_REBUILD}.
Whether CloudFront hands a path to its functions exactly as it was sent is not documented; it is compared as it is handed over.`;
}

const NO_REBUILD = `nothing again: a function has no
room for all these keys, so it looks into the folder of whatever key is sent, and the server refuses those that no app has`;
