/**
 * A stand-in for CloudFront, written from its documentation: the functions run in a context without any host objects, a
 * static host is the bucket, and failover sends the same path to the server.
 */
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { createContext, runInContext } from "node:vm";
import type { Running } from "./edge-program.ts";
import { openStatic } from "./edge-static.ts";
import { askBytes, type ReceivedBytes } from "./site.ts";

export type CloudfrontRequest = {
  readonly method: string;
  readonly uri: string;
  readonly querystring: Readonly<Record<string, { readonly value: string; readonly multiValue?: unknown[] }>>;
  readonly headers: Readonly<Record<string, { readonly value: string; readonly multiValue?: unknown[] }>>;
};
type CloudfrontResponse = {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, { readonly value: string }>>;
  /** An object with `data` where a function made the response. */
  readonly body?: Buffer | { readonly data: string };
};
type Handler = (event: object) => object;

/** `folder` contains the two functions that the program wrote. */
export async function openCloudfront(folder: string, out: string, server: string): Promise<Running> {
  const onRequest = openFunction(join(folder, "viewer-request.js"));
  const onResponse = openFunction(join(folder, "viewer-response.js"));
  const bucket = await openStatic(out);
  const edge = createServer({ maxHeaderSize: 65_536 }, async (incoming, outgoing) => {
    const asked = onRequest({ request: requestOf(incoming) }) as CloudfrontRequest | CloudfrontResponse;
    const made = "statusCode" in asked ? asked : await fetchOrFail(asked, incoming, bucket.url, server);
    const { statusCode, headers, body } = { body: Buffer.alloc(0), ...made };
    const answer =
      "statusCode" in asked ? asked : (onResponse({ response: { statusCode, headers } }) as CloudfrontResponse);
    for (const [name, { value }] of Object.entries(answer.headers)) outgoing.setHeader(name, value);
    outgoing.writeHead(answer.statusCode).end("data" in body ? body.data : body);
  });
  await new Promise<void>((resolve) => edge.listen(0, "127.0.0.1", resolve));
  const stop = async () => {
    edge.closeAllConnections();
    await new Promise((resolve) => edge.close(resolve));
    await bucket.stop();
  };
  return { url: `http://127.0.0.1:${(edge.address() as AddressInfo).port}`, stop };
}

export function openFunction(path: string): Handler {
  const context = createContext({});
  runInContext(readFileSync(path, "utf8"), context);
  return runInContext("handler", context) as Handler;
}

/** The request as CloudFront's functions see it: query names and values undecoded, repeated ones in `multiValue`. */
export function requestOf({
  method = "GET",
  url = "/",
  rawHeaders,
}: Pick<IncomingMessage, "method" | "url" | "rawHeaders">) {
  const [uri = "", query] = url.includes("?")
    ? [url.slice(0, url.indexOf("?")), url.slice(url.indexOf("?") + 1)]
    : [url];
  const pairs = (query ?? "").split("&").filter((part) => part !== "");
  const parameters = pairs.map((part): [string, string] => {
    const [name = "", ...rest] = part.split("=");
    return [name, rest.join("=")];
  });
  const headers = rawHeaders.flatMap((name, at): [string, string][] =>
    at % 2 === 0 ? [[name.toLowerCase(), rawHeaders[at + 1] as string]] : [],
  );
  return {
    method,
    uri,
    querystring: together(parameters),
    headers: together(headers),
    rawQueryString: () => query,
  };
}

function together(pairs: readonly [string, string][]): CloudfrontRequest["headers"] {
  const names = [...new Set(pairs.map(([name]) => name))];
  return Object.fromEntries(
    names.map((name) => {
      const values = pairs.filter(([other]) => other === name).map(([, value]) => ({ value }));
      return [name, { ...(values[0] as { value: string }), ...(values.length > 1 ? { multiValue: values } : {}) }];
    }),
  );
}

async function fetchOrFail(asked: CloudfrontRequest, incoming: IncomingMessage, bucket: string, server: string) {
  const query = Object.entries(asked.querystring).flatMap(([name, { value, multiValue = [{ value }] }]) =>
    (multiValue as { value: string }[]).map((one) => `${name}=${one.value}`),
  );
  const { headers, method = "GET" } = incoming;
  const keys = incoming.headersDistinct["x-app-key"] ?? [];
  const kept = { "X-App-Key": keys, "X-Request-Id": String(headers["x-request-id"]) };
  const validator = headers["if-none-match"] === undefined ? {} : { "If-None-Match": headers["if-none-match"] };
  const sent = {
    method,
    headers: keys.length === 0 ? { "X-Request-Id": kept["X-Request-Id"], ...validator } : { ...kept, ...validator },
  };
  const { uri, querystring } = requestOf(incoming);
  const untouched = asked.uri === uri && JSON.stringify(asked.querystring) === JSON.stringify(querystring);
  const target = untouched ? (incoming.url as string) : asked.uri + (query.length === 0 ? "" : `?${query.join("&")}`);
  const acted = Object.keys(asked.querystring).some((name) => BUCKET_PARAMETERS.includes(name));
  const found = acted ? NOT_ALLOWED : await askBytes(bucket, asked.uri, sent).catch(() => null);
  return responseOf(
    found !== null && (found.status < 400 || acted) ? found : await askBytes(server, target, sent).catch(() => GONE),
  );
}

/** Some of the parameters on which S3 acts: it answers 405 to these in a GET of an object, at which nothing fails over. */
const BUCKET_PARAMETERS = ["delete", "restore", "select"];
const NOT_ALLOWED: ReceivedBytes = { status: 405, headers: {}, bytes: Buffer.from("<Error/>") };
const GONE: ReceivedBytes = { status: 502, headers: {}, bytes: Buffer.alloc(0) };
const HOP = ["connection", "keep-alive", "transfer-encoding", "date"];

function responseOf({ status, headers, bytes }: ReceivedBytes): CloudfrontResponse {
  const kept = Object.entries(headers).filter(([name]) => !HOP.includes(name));
  return {
    statusCode: status,
    headers: Object.fromEntries(kept.map(([name, value]) => [name, { value }])),
    body: bytes,
  };
}
