/** Stores a tree in a bucket of Amazon S3 or a compatible store. Source: Amazon S3 API Reference. */
import { isIP } from "node:net";
import { tagList } from "../../shared/api/answer.ts";
import {
  type Credentials,
  exchange,
  type Fault,
  isRetryableStatus,
  makeFault,
  overloadedFault,
  type Received,
  type RetryPolicy,
} from "./http.ts";
import { openSigner } from "./signature.ts";
import type { Condition, FileHeaders, PutOptions, PutOutcome, Store, Stored } from "./store.ts";

type S3Options = BucketAddress & {
  /** Without a leading or trailing slash; may be empty. */
  readonly prefix: string;
  readonly credentials: Credentials;
  readonly retryPolicy: RetryPolicy;
};

type S3Request = {
  readonly method: string;
  /** Left out for a request to the bucket itself. */
  readonly key?: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array<ArrayBuffer>;
};

const EMPTY_SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

export function openS3Store(options: S3Options): Store {
  const { bucket, prefix, region, credentials, retryPolicy } = options;
  const base = findBaseUrl(options);
  const where: Bucket = { bucket, host: base.host, region };
  const sign = openSigner(credentials, { service: "s3", region });
  const below = prefix === "" ? "" : `${prefix}/`;

  /** `read` returns undefined for a response that is not what was asked for. */
  const send = <T>(
    { method, key, query = {}, headers = {}, body }: S3Request,
    read: (received: Received) => T | undefined,
    { throwIfStopped, signal }: Pick<PutOptions, "throwIfStopped" | "signal"> = {},
  ) =>
    exchange(
      () => {
        throwIfStopped?.();
        const url = writeUrl(base, key === undefined ? "" : below + key, query);
        const content = { "x-amz-content-sha256": EMPTY_SHA256, ...headers };
        return sign({ method, url, headers: content, body }, retryPolicy.now());
      },
      (received) => {
        const done = read(received);
        return done === undefined ? readFault(received, where) : { done };
      },
      base.host,
      retryPolicy,
      signal,
    );

  return {
    name: `s3://${bucket}${prefix === "" ? "" : `/${prefix}`}`,
    get: (key) => send({ method: "GET", key }, readStored),
    getIfChanged: (key, etag) =>
      send({ method: "GET", key, headers: etag === null ? {} : { "if-none-match": etag } }, (received) =>
        etag !== null && received.status === 304 ? "same" : readStored(received),
      ),
    put: (key, body, { headers, sha256, condition, throwIfStopped, signal }) => {
      const all = { ...writeHeaders(headers, sha256), ...conditionHeaders(condition) };
      const read = (received: Received) => readPut(received, condition !== undefined);
      return send({ method: "PUT", key, headers: all, body }, read, { throwIfStopped, signal });
    },
    remove: async (key, throwIfStopped) => {
      await send({ method: "DELETE", key }, readRemoved, { throwIfStopped });
    },
    list: async function* (prefix) {
      const all = below + prefix;
      const query = { "list-type": "2", "encoding-type": "url", ...(all === "" ? {} : { prefix: all }) };
      for (let token = ""; ; ) {
        const at: Record<string, string> = token === "" ? {} : { "continuation-token": token };
        const page = await send({ method: "GET", query: { ...query, ...at } }, ({ status, body }) =>
          status === 200 ? readList(body, token) : undefined,
        );
        for (const key of page.keys) yield key.slice(below.length);
        if (page.next === null) return;
        token = page.next;
      }
    },
  };
}

const JSON_TYPE = "application/json; charset=utf-8";

function writeHeaders(headers: FileHeaders, sha256: string): Record<string, string> {
  const { cacheControl, cdnCacheControl, tags, contentType = JSON_TYPE } = headers;
  return {
    "x-amz-content-sha256": sha256,
    "content-type": contentType,
    "cache-control": cacheControl,
    ...(cdnCacheControl === null ? {} : { "x-amz-meta-cdn-cache-control": cdnCacheControl }),
    ...(tags.length === 0 ? {} : { "x-amz-meta-cache-tag": tagList(tags) }),
  };
}

function conditionHeaders(condition: Condition | undefined): Record<string, string> {
  if (condition === undefined) return {};
  if (condition.kind === "absent") return { "if-none-match": "*" };
  // A proxy that compresses makes ETags weak, and a weak ETag never satisfies If-Match (RFC 9110 section 13.1.1).
  return { "if-match": condition.etag.replace(/^W\//, "") };
}

// The URLs of a bucket and its objects. Source: Amazon S3 User Guide, "Virtual hosting of buckets".

type BucketAddress = {
  readonly bucket: string;
  /** Null for Amazon's own endpoint of the region. */
  readonly endpoint: string | null;
  readonly region: string;
  readonly pathStyle: boolean;
};

/** The URL of the bucket. */
function findBaseUrl({ bucket, endpoint, region, pathStyle }: BucketAddress): URL {
  const url = new URL(endpoint ?? `https://s3.${region}.amazonaws.com`);
  if (pathStyle || !mayBeSubdomain(url, bucket))
    url.pathname = `${url.pathname.replace(/\/$/, "")}/${encodeURIComponent(bucket)}`;
  else url.hostname = `${bucket}.${url.hostname}`;
  return url;
}

/**
 * Whether the bucket can be part of the host name. It cannot before an IP address or `localhost`, with characters that
 * host names do not have (capitals, `_`), and over HTTPS with dots, for which there is no certificate.
 */
function mayBeSubdomain({ hostname, protocol }: URL, bucket: string): boolean {
  const isNumeric = isIP(hostname) !== 0 || hostname.startsWith("[");
  const isHost = /^[a-z0-9.-]+$/.test(bucket) && (protocol === "http:" || !bucket.includes("."));
  return !isNumeric && hostname !== "localhost" && isHost;
}

function writeUrl(base: URL, key: string, query: Readonly<Record<string, string>>): URL {
  const url = new URL(base);
  url.pathname = `${url.pathname.replace(/\/$/, "")}/${key.split("/").map(encodeURIComponent).join("/")}`;
  // Not by URLSearchParams, which turns a space into a plus: the signature covers the query as it stands in the URL.
  url.search = Object.entries(query)
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
    .join("&");
  return url;
}

// Reads what a request was answered with; undefined when that is something else, and readFault says what.

/** Null when nothing has the key. */
function readStored(received: Received): Stored | null | undefined {
  const { status, headers, body } = received;
  if (isMissing(received)) return null;
  const { etag } = headers;
  return status !== 200 || etag === undefined || isError(body)
    ? undefined
    : { bytes: body, etag, age: readAge(headers) };
}

function readPut(received: Received, isConditional: boolean): PutOutcome | undefined {
  const { status, headers, body } = received;
  // The answer to `If-Match` is 404 if the object was deleted meanwhile.
  const isUnmet = status === 412 || (status === 404 && body.includes("<Code>NoSuchKey<"));
  if (isConditional && isUnmet) return { kind: "unmet" };
  if (isConditional && isUnsupported(received)) return { kind: "unsupported" };
  const { etag } = headers;
  return status !== 200 || etag === undefined || isError(body) ? undefined : { kind: "put", etag };
}

/**
 * Whether a store refuses a condition as such. Some answer as to a read (304) or to a method that they do not have (405).
 * What is refused with 400 for another reason is refused without the condition as well, and says why then.
 */
function isUnsupported({ status, body }: Received): boolean {
  if (status !== 400) return [304, 405, 501].includes(status);
  const code = textIn(body.toString("utf8", 0, 4_096), "Code");
  return code !== null && !RETRYABLE_CODES.includes(code);
}

function readRemoved(received: Received): null | undefined {
  const { status, body } = received;
  return isMissing(received) || status === 204 || (status === 200 && body.length === 0) ? null : undefined;
}

/** Whether the store itself says that a key does not exist. A web page with 404 comes from something in front of it. */
function isMissing({ status, body }: Received): boolean {
  if (status !== 404) return false;
  return body.length === 0 || (body.includes("<Code>") && !body.includes("<Code>NoSuchBucket<"));
}

/** Whether a body is an error document or a web page, whatever the status. */
function isError(body: Buffer): boolean {
  return /^\s*(<\?xml[^>]*>)?\s*<(Error|!doctype|html)\b/i.test(body.toString("utf8", 0, 512));
}

function readAge(headers: Received["headers"]): number | null {
  const age = (Date.parse(headers.date ?? "") - Date.parse(headers["last-modified"] ?? "")) / 1_000;
  return Number.isNaN(age) ? null : age;
}

/** `next` is null on the last page. */
type ListPage = { readonly keys: readonly string[]; readonly next: string | null };

/**
 * Decodes the keys if the list says that they are percent-encoded (`encoding-type=url`). `token` is the continuation token
 * of this page: if the next page has the same, the list would never end.
 */
function readList(body: Buffer, token: string): ListPage | undefined {
  const text = body.toString("utf8").trim();
  if (!/^(<\?xml[^>]*>)?\s*<ListBucketResult\b/.test(text) || !text.endsWith("</ListBucketResult>")) return undefined;
  const truncated = textIn(text, "IsTruncated");
  const next = truncated === "true" ? textIn(text, "NextContinuationToken") : null;
  if (truncated === null || (truncated === "true" && (next === null || next === token))) return undefined;
  const isEncoded = textIn(text, "EncodingType") === "url";
  const written = [...text.matchAll(/<Contents>.*?<Key>([^<]*)<\/Key>.*?<\/Contents>/gs)].map(([, key = ""]) =>
    unescapeXml(key),
  );
  try {
    return { keys: isEncoded ? written.map((key) => decodeURIComponent(key.replaceAll("+", " "))) : written, next };
  } catch {
    return undefined;
  }
}

function textIn(xml: string, name: string): string | null {
  const found = new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1];
  return found === undefined ? null : unescapeXml(found);
}

const ENTITIES = new Map(Object.entries({ amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" }));
const LAST_CHARACTER = 0x10ffff;

/** What stands for no character is left as it is. */
function unescapeXml(text: string): string {
  return text.replace(/&(?:#(\d+)|#x([0-9a-f]+)|(\w+));/gi, (whole, decimal, hex, name) => {
    if (name !== undefined) return ENTITIES.get(name) ?? whole;
    const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal);
    return code <= LAST_CHARACTER ? String.fromCodePoint(code) : whole;
  });
}

// What an unexpected response stands for.

/** Where a request was sent. */
type Bucket = { readonly bucket: string; readonly host: string; readonly region: string };

function readFault(received: Received, where: Bucket): Fault {
  const { status, headers, body } = received;
  // S3 can say 200 before it finds that it fails. Any other wrong content comes from another server.
  if (status === 200)
    return body.includes("<Error>") ? readFault({ ...received, status: 500 }, where) : garbled(received, where);
  const text = body.toString("utf8", 0, 4_096);
  const code = textIn(text, "Code");
  const why = textIn(text, "Message") ?? "";
  const actual = headers["x-amz-bucket-region"]?.toString() ?? textIn(text, "Region");
  const known = describeKnownFault({ status, code, why }, actual, where);
  if (known !== null) return makeFault(known);
  const isRetryable = isRetryableStatus(status) || RETRYABLE_CODES.includes(code ?? "");
  if (status >= 500 || isRetryable) return overloadedFault(where.host, describeStatus(status, code), isRetryable);
  if (code === null) return garbled(received, where);
  return makeFault(`${where.host} refused a request (${describeStatus(status, code, why)}).`);
}

const RETRYABLE_CODES = ["RequestTimeout", "SlowDown", "InternalError", "ServiceUnavailable", "OperationAborted"];

type Refusal = { readonly status: number; readonly code: string | null; readonly why: string };

function describeKnownFault(
  { status, code, why }: Refusal,
  actual: string | null,
  { bucket, host, region }: Bucket,
): string | null {
  // With another status, a quota is one of requests, and passes.
  if ([400, 403, 507].includes(status) && /quota|storage.?(cap|full)/i.test(`${code} ${why}`))
    return `${host} has no room left for the bucket ${bucket} (${describeStatus(status, code, why)}). Raise its quota, or delete what is no longer needed, and deploy again.`;
  if (code === "NoSuchBucket")
    return `There is no bucket ${bucket} at ${host}. Create it, or check its name and --endpoint.`;
  if (code === "RequestTimeTooSkewed")
    return `The clock of this machine differs too much from that of ${host}. Synchronise it (NTP).`;
  if (code === "ExpiredToken") return `The credentials for ${host} have expired. Get new ones, and deploy again.`;
  if ([301, 302, 307, 308].includes(status) || code === "AuthorizationHeaderMalformed") {
    const isKnown = actual !== null && actual !== region;
    const advice = isKnown ? `It is in ${actual}: use --region ${actual}.` : "Check --endpoint and --region.";
    return `The bucket ${bucket} is not at ${host} in ${region}. ${advice}`;
  }
  if (status === 401 || (status === 403 && code !== "SlowDown"))
    return `${host} denies access to the bucket ${bucket} (${describeStatus(status, code)}). Check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and their permissions: read, write, list and delete.`;
  return null;
}

function describeStatus(status: number, code: string | null, why = ""): string {
  return `${status}${code === null ? "" : ` ${code}`}${why === "" ? "" : `: ${why}`}`;
}

/** The fault for a response that is truncated, or comes from a captive portal, a proxy or a web server. */
function garbled({ status, headers }: Received, { host }: Bucket): Fault {
  const type = headers["content-type"]?.split(";")[0] ?? "no content type";
  return makeFault(
    `${host} does not answer like S3 (${status}, ${type}). Check --endpoint and any proxy in between.`,
    true,
  );
}
