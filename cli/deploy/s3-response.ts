/**
 * Reads what a bucket answers: what was asked for, or undefined, and then readFault says what it is instead. Source: Amazon
 * S3 API Reference.
 */
import { type Fault, isRetryableStatus, makeFault, overloadedFault, type Received } from "./http.ts";
import type { PutOutcome, Stored } from "./store.ts";

/** Null when nothing has the key. */
export function readStored(received: Received): Stored | null | undefined {
  const { status, headers, body } = received;
  if (isMissing(received)) return null;
  const { etag } = headers;
  return status !== 200 || etag === undefined || isError(body)
    ? undefined
    : { bytes: body, etag, age: readAge(headers) };
}

export function readPut(received: Received, isConditional: boolean): PutOutcome | undefined {
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

export function readRemoved(received: Received): null | undefined {
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
export function readList(body: Buffer, token: string): ListPage | undefined {
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
export type Bucket = { readonly bucket: string; readonly host: string; readonly region: string };

export function readFault(received: Received, where: Bucket): Fault {
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
