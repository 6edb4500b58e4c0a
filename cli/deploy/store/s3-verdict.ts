/** Judges responses of S3: whether a request is done, and with what. Source: Amazon S3 API Reference. */
import type { Received, Verdict } from "../exchange.ts";
import { type Bucket, faultOf, garbled, isError, readList } from "./s3-response.ts";
import type { Condition, PutOutcome, Store } from "./store.ts";

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
  return received.body.includes("<Error>") ? faultOf({ ...received, status: 500 }, where) : garbled(received, where);
}

function ageIn(headers: Headers): number | null {
  const [now, written] = ["date", "last-modified"].map((name) => Date.parse(headers.get(name) ?? "")) as [
    number,
    number,
  ];
  const age = (now - written) / 1_000;
  return Number.isNaN(age) ? null : age;
}
