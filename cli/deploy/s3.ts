/** Stores a tree in a bucket of Amazon S3 or a compatible store. Source: Amazon S3 API Reference. */
import { isIP } from "node:net";
import { tagList } from "../../shared/api/answer.ts";
import {
  type Credentials,
  exchange,
  type OutgoingRequest,
  openSigner,
  type Received,
  type RetryPolicy,
  type Verdict,
} from "./http.ts";
import { type Bucket, judgeGet, judgeList, judgePut, judgeRemove, readFault } from "./s3-response.ts";
import type { Condition, FileHeaders, PutOptions, Store } from "./store.ts";

type S3Options = BucketAddress & {
  /** Without a leading or trailing slash; may be empty. */
  readonly prefix: string;
  readonly credentials: Credentials;
  readonly retryPolicy: RetryPolicy;
};

type S3Request = {
  readonly method: string;
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
  const signer = openSigner(credentials, { service: "s3", region });
  const fullKey = (key: string) => (prefix === "" ? key : `${prefix}/${key}`);

  const sign = async ({ method, key = "", query = {}, headers = {}, body }: S3Request): Promise<OutgoingRequest> => {
    const url = writeUrl(base, key, query);
    const content = { "x-amz-content-sha256": EMPTY_SHA256, ...headers };
    return signer({ method, url, headers: content, body }, retryPolicy.now());
  };
  const send = <T>(
    request: S3Request,
    judge: (received: Received) => Verdict<T> | null,
    { throwIfStopped, signal }: Pick<PutOptions, "throwIfStopped" | "signal"> = {},
  ) =>
    exchange(
      () => {
        throwIfStopped?.();
        return sign(request);
      },
      (received) => judge(received) ?? readFault(received, where),
      base.host,
      retryPolicy,
      signal,
    );

  return {
    name: `s3://${bucket}${prefix === "" ? "" : `/${prefix}`}`,
    get: (key) => send({ method: "GET", key: fullKey(key) }, (received) => judgeGet(received, where)),
    put: (key, body, { headers, sha256, condition, throwIfStopped, signal }) => {
      const all = { ...writeHeaders(headers, sha256), ...conditionHeaders(condition) };
      const judge = (received: Received) => judgePut(received, where, condition);
      return send({ method: "PUT", key: fullKey(key), headers: all, body }, judge, { throwIfStopped, signal });
    },
    remove: async (key, throwIfStopped) => {
      await send({ method: "DELETE", key: fullKey(key) }, (received) => judgeRemove(received, where), {
        throwIfStopped,
      });
    },
    list: async function* () {
      const below = prefix === "" ? "" : `${prefix}/`;
      const query = { "list-type": "2", "encoding-type": "url", ...(below === "" ? {} : { prefix: below }) };
      for (let token = ""; ; ) {
        const at: Record<string, string> = token === "" ? {} : { "continuation-token": token };
        const page = await send({ method: "GET", query: { ...query, ...at } }, (received) =>
          judgeList(received, where, token),
        );
        for (const key of page.keys) yield key.slice(below.length);
        if (page.next === null) return;
        token = page.next;
      }
    },
  };
}

function writeHeaders({ cacheControl, cdnCacheControl, tags }: FileHeaders, sha256: string): Record<string, string> {
  return {
    "x-amz-content-sha256": sha256,
    "content-type": "application/json; charset=utf-8",
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
