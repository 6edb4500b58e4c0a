/** Writes two CloudFront functions and how to install them: one names the object in S3, the other sets its headers. */
import { type Answer, refusalAnswer } from "../../../shared/answer.ts";
import { routeNotFound } from "../../../shared/refusal.ts";
import type { Edge, EdgeFile } from "../edge.ts";
import { fileHeaders, type Headers, preflightHeaders } from "../headers.ts";
import { compacted, foldersOf, readCore, readHost, writeScript } from "../script.ts";
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
  const head = "Viewer request (cloudfront-js-2.0) from `precast edge cloudfront`. See setup.txt.";
  return writeScript([head], values, [readHost("cloudfront-request"), readCore()].map(compacted));
}

function responseFunction({ policy }: Edge): string {
  const head = "Viewer response (cloudfront-js-2.0) from `precast edge cloudfront`. See setup.txt.";
  // CloudFront can compress files itself, and this Vary replaces its own.
  const headers = { ...fileHeaders(policy), Vary: "X-App-Key, Accept-Encoding" };
  return writeScript([head], { FILE_HEADERS: headersOf(headers) }, [readHost("cloudfront-response")]);
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
  return `CloudFront serves the files of a Precast tree from S3 and forwards everything else to \`precast serve\`.

 1. Put the tree, without its .precast folder, into a bucket, with one folder per app:
${apps.map(({ key, folder }) => `      ${folder}/  for ${key}`).join("\n")}
    Keep the bucket private: CloudFront reads it through an origin access control, with s3:GetObject and nothing else.
 2. Run the server at ${origin.origin} with --tree-paths (PRECAST_TREE_PATHS=true). When the bucket lacks a file,
    CloudFront requests it from the server by its path in the bucket, with the key and the query of the request.
 3. Create one origin group: the bucket first, the server second, failover on 400, 403, 404, 500, 502, 503 and 504. A
    bucket answers 403 for files that it lacks, and 400 for keys above 1,024 bytes and queries that it cannot read.
 4. Create one behaviour, for all paths:
      allowed methods        GET, HEAD, OPTIONS
      cache policy           the header X-App-Key and all query strings in the cache key; minimum TTL 0
      origin request policy  AllViewerExceptHostHeader
      viewer request         viewer-request.js, runtime cloudfront-js-2.0
      viewer response        viewer-response.js, runtime cloudfront-js-2.0
 5. Create error responses for 500, 502, 503 and 504 with an error caching minimum TTL of 0, without a page: CloudFront
    ignores the no-store of these errors, and would give each to everybody who asks for the same in the next 10 seconds.
 6. Do not set a response headers policy: it would add the headers of files to counted answers, too. The viewer response
    function tells them apart.

CloudFront reads Cache-Control of objects and answers, but not CDN-Cache-Control: set the Cache-Control of the objects to the
lifetime that CloudFront should use (\`precast deploy --cache-control\`). Clients get the Cache-Control that the viewer response
function sets. The default TTL has no effect, because a deploy gives every object a Cache-Control. CloudFront itself refuses
other methods. ETags of files are those of the bucket. A request that has no file in the tree goes to the bucket first, and
then to the server.
When you add an app, ${fits ? "generate the functions again" : NO_REBUILD}.
CloudFront does not document whether it passes a path to its functions exactly as it was sent. The functions use the path that
they receive.`;
}

const NO_REBUILD = `there is nothing to generate: a function has no room for all these keys,
so it looks into the folder of whatever key is sent, and the server refuses keys that no app has`;
