/** The URLs of a bucket and its objects. Source: Amazon S3 User Guide, "Virtual hosting of buckets". */
import { isIP } from "node:net";

export type BucketAddress = {
  readonly bucket: string;
  /** Null for Amazon's own endpoint of the region. */
  readonly endpoint: string | null;
  readonly region: string;
  readonly pathStyle: boolean;
};

/** The URL of the bucket. */
export function baseOf({ bucket, endpoint, region, pathStyle }: BucketAddress): URL {
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

export function urlOf(base: URL, key: string, query: Readonly<Record<string, string>>): URL {
  const url = new URL(base);
  url.pathname = `${url.pathname.replace(/\/$/, "")}/${key.split("/").map(encodeURIComponent).join("/")}`;
  // Not by URLSearchParams, which turns a space into a plus: the signature covers the query as it stands in the URL.
  url.search = Object.entries(query)
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
    .join("&");
  return url;
}
