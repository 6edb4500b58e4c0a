/** Stores a tree in a bucket of Amazon S3 or a compatible store. Source: Amazon S3 API Reference. */
import { isIP } from "node:net";
import { tagList } from "../../shared/api/answer.ts";
import { type Credentials, exchange, type Received, type RetryPolicy } from "./http.ts";
import { type Bucket, readFault, readList, readPut, readRemoved, readStored } from "./s3-response.ts";
import { openSigner } from "./signature.ts";
import type { Condition, FileHeaders, PutOptions, Store } from "./store.ts";

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
