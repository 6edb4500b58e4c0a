/** Reads the responses of S3: XML lists, and errors, which become faults. Source: Amazon S3 API Reference. */
import { isRetryableStatus, type Received, RemoteFault, type Verdict } from "./http.ts";
import type { Condition, PutOutcome, Store } from "./store.ts";

/** `isRetryable` says whether a retry may succeed. */
type S3Fault = { readonly fault: RemoteFault; readonly isRetryable: boolean };

/** Where a request was sent, for error messages. */
export type Bucket = { readonly bucket: string; readonly host: string; readonly region: string };

/** The fault that an unexpected response stands for. */
export function readFault(received: Received, where: Bucket): S3Fault {
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
function garbled({ status, headers }: Received, { host }: Pick<Bucket, "host">): S3Fault {
  const type = headers.get("content-type")?.split(";")[0] ?? "no content type";
  const message = `${host} does not answer like S3 (${status}, ${type}). Check --endpoint and any proxy in between.`;
  return { fault: new RemoteFault(message), isRetryable: true };
}

/** Whether a body is an error document or a web page, whatever the status. */
function isError(body: Buffer): boolean {
  return /^\s*(<\?xml[^>]*>)?\s*<(Error|!doctype|html)\b/i.test(body.toString("utf8", 0, 512));
}

type ListPage = {
  readonly keys: readonly string[];
  /** Null on the last page. */
  readonly next: string | null;
};

/** Decodes the keys if the list says that they are percent-encoded (`encoding-type=url`). Null if no complete list. */
function readList(body: Buffer): ListPage | null {
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

// Judges responses of S3: whether a request is done, and with what. Source: Amazon S3 API Reference.

/** Whether the store itself says that a key does not exist. A web page with 404 comes from something in front of it. */
function isMissing({ status, body }: Received): boolean {
  if (status !== 404) return false;
  return body.length === 0 || (body.includes("<Code>") && !body.includes("<Code>NoSuchBucket<"));
}

export function judgeGet(received: Received, where: Bucket): Verdict<Awaited<ReturnType<Store["get"]>>> | null {
  const { status, headers, body } = received;
  if (isMissing(received)) return { done: null };
  if (status !== 200) return null;
  const etag = headers.get("etag");
  if (etag === null || isError(body)) return faultOrGarbled(received, where);
  return { done: { bytes: body, etag, age: ageIn(headers) } };
}

export function judgePut(
  received: Received,
  where: Bucket,
  condition: Condition | undefined,
): Verdict<PutOutcome> | null {
  const etag = received.headers.get("etag");
  if (condition !== undefined && isUnmet(received)) return { done: { kind: "unmet" } };
  if (condition !== undefined && received.status === 501) return { done: { kind: "unsupported" } };
  if (received.status !== 200) return null;
  return etag === null || isError(received.body) ? faultOrGarbled(received, where) : { done: { kind: "put", etag } };
}

/** The answer to `If-Match` is 404 if the object was deleted meanwhile. */
function isUnmet({ status, body }: Received): boolean {
  return status === 412 || (status === 404 && body.includes("<Code>NoSuchKey<"));
}

export function judgeRemove(received: Received, where: Bucket): Verdict<null> | null {
  if (isMissing(received) || received.status === 204) return { done: null };
  if (received.status !== 200) return null;
  return received.body.length > 0 ? faultOrGarbled(received, where) : { done: null };
}

/** `token` is the continuation token of this page. If the next page has the same, the list would never end. */
export function judgeList(
  received: Received,
  where: Bucket,
  token: string,
): Verdict<NonNullable<ReturnType<typeof readList>>> | null {
  if (received.status !== 200) return null;
  const page = readList(received.body);
  return page === null || page.next === token ? faultOrGarbled(received, where) : { done: page };
}

/** The fault for a 200 with the wrong content: an error document of S3, or the response of some other server. */
function faultOrGarbled(
  received: Received,
  where: Bucket,
): { fault: ReturnType<typeof garbled>["fault"]; isRetryable: boolean } {
  return received.body.includes("<Error>") ? readFault({ ...received, status: 500 }, where) : garbled(received, where);
}

function ageIn(headers: Headers): number | null {
  const [now, written] = ["date", "last-modified"].map((name) => Date.parse(headers.get(name) ?? "")) as [
    number,
    number,
  ];
  const age = (now - written) / 1_000;
  return Number.isNaN(age) ? null : age;
}
