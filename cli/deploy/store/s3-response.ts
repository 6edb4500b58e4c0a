/** Reads the responses of S3: XML lists, and errors, which become faults. Source: Amazon S3 API Reference. */
import { isRetryableStatus, type Received } from "../exchange.ts";
import { RemoteFault } from "../fault.ts";

/** `isRetryable` says whether a retry may succeed. */
export type S3Fault = { readonly fault: RemoteFault; readonly isRetryable: boolean };

/** Where a request was sent, for error messages. */
export type Bucket = { readonly bucket: string; readonly host: string; readonly region: string };

/** The fault that an unexpected response stands for. */
export function faultOf(received: Received, where: Bucket): S3Fault {
  const text = received.body.toString("utf8", 0, 4_096);
  const code = textIn(text, "Code");
  const region = received.headers.get("x-amz-bucket-region") ?? textIn(text, "Region");
  const known = knownFault(received, code, region, where);
  if (known !== null) return { fault: known, isRetryable: false };
  if (received.status >= 500 || isRetryableStatus(received.status) || RETRYABLE_CODES.has(code ?? "")) {
    const message = `${where.host} is overloaded or failing (${describeStatus(received.status, code)}). Try again later.`;
    return {
      fault: new RemoteFault(message),
      isRetryable: isRetryableStatus(received.status) || RETRYABLE_CODES.has(code ?? ""),
    };
  }
  if (code === null) return garbled(received, where);
  const why = textIn(text, "Message") ?? "";
  const message = `${where.host} refused a request (${describeStatus(received.status, code)}${why === "" ? "" : `: ${why}`}).`;
  return { fault: new RemoteFault(message), isRetryable: false };
}

const RETRYABLE_CODES = new Set([
  "RequestTimeout",
  "SlowDown",
  "InternalError",
  "ServiceUnavailable",
  "OperationAborted",
]);

function knownFault(
  { status }: Received,
  code: string | null,
  region: string | null,
  { bucket, host, region: asked }: Bucket,
): RemoteFault | null {
  if (code === "NoSuchBucket") {
    return new RemoteFault(`There is no bucket ${bucket} at ${host}. Create it, or check its name and --endpoint.`);
  }
  if (code === "RequestTimeTooSkewed") {
    return new RemoteFault(`The clock of this machine differs too much from that of ${host}. Synchronise it (NTP).`);
  }
  if (code === "ExpiredToken") {
    const message = `The credentials for ${host} have expired. Get new ones, and deploy again.`;
    return new RemoteFault(message);
  }
  if ([301, 302, 307, 308].includes(status) || code === "AuthorizationHeaderMalformed") {
    const there = region !== null && region !== asked;
    const advice = there ? `It is in ${region}: use --region ${region}.` : "Check --endpoint and --region.";
    return new RemoteFault(`The bucket ${bucket} is not at ${host} in ${asked}. ${advice}`);
  }
  if (status === 401 || (status === 403 && code !== "SlowDown")) {
    const message = `${host} denies access to the bucket ${bucket} (${describeStatus(status, code)}). Check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and their permissions: read, write, list and delete.`;
    return new RemoteFault(message);
  }
  return null;
}

function describeStatus(status: number, code: string | null): string {
  return code === null ? String(status) : `${status} ${code}`;
}

/** The fault for a response that is truncated, or comes from a captive portal, a proxy or a web server. */
export function garbled({ status, headers }: Received, { host }: Pick<Bucket, "host">): S3Fault {
  const type = headers.get("content-type")?.split(";")[0] ?? "no content type";
  const message = `${host} does not answer like S3 (${status}, ${type}). Check --endpoint and any proxy in between.`;
  return { fault: new RemoteFault(message), isRetryable: true };
}

/** Whether a body is an error document or a web page, whatever the status. */
export function isError(body: Buffer): boolean {
  return /^\s*(<\?xml[^>]*>)?\s*<(Error|!doctype|html)\b/i.test(body.toString("utf8", 0, 512));
}

export type ListPage = {
  readonly keys: readonly string[];
  /** Null on the last page. */
  readonly next: string | null;
};

/** Decodes the keys if the list says that they are percent-encoded (`encoding-type=url`). Null if no complete list. */
export function readList(body: Buffer): ListPage | null {
  const text = body.toString("utf8").trim();
  if (!/^(<\?xml[^>]*>)?\s*<ListBucketResult\b/.test(text) || !text.endsWith("</ListBucketResult>")) return null;
  const truncated = textIn(text, "IsTruncated");
  const next = textIn(text, "NextContinuationToken");
  if (truncated === null || (truncated === "true" && next === null)) return null;
  const isEncoded = textIn(text, "EncodingType") === "url";
  const written = [...text.matchAll(/<Contents>.*?<Key>([^<]*)<\/Key>.*?<\/Contents>/gs)].map(([, key = ""]) =>
    unescapeXml(key),
  );
  const keys = isEncoded ? decodeKeys(written) : written;
  return keys === null ? null : { keys, next: truncated === "true" ? next : null };
}

/** Null if one of them is not percent-encoded. */
function decodeKeys(keys: readonly string[]): string[] | null {
  try {
    return keys.map((key) => decodeURIComponent(key.replaceAll("+", " ")));
  } catch {
    return null;
  }
}

function textIn(xml: string, name: string): string | null {
  const found = new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1];
  return found === undefined ? null : unescapeXml(found);
}

const ENTITIES: ReadonlyMap<string, string> = new Map([
  ["amp", "&"],
  ["lt", "<"],
  ["gt", ">"],
  ["quot", '"'],
  ["apos", "'"],
]);
const LAST_CHARACTER = 0x10ffff;

/** What stands for no character is left as it is. */
function unescapeXml(text: string): string {
  return text.replace(/&(?:#(\d+)|#x([0-9a-f]+)|(\w+));/gi, (whole, decimal, hex, name) => {
    if (name !== undefined) return ENTITIES.get(name) ?? whole;
    const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal);
    return code <= LAST_CHARACTER ? String.fromCodePoint(code) : whole;
  });
}
