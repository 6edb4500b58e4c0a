/** Builds the status, headers and body of every answer; no other file does. Source: contract.md sections 6 and 7. */
import { errorBody } from "./body.ts";
import { type Coding, etagOf, matchesEtag } from "./etag.ts";
import { isCountedShape, type Metering } from "./metering.ts";
import { type Refusal, retryAfter, statusOf } from "./refusal.ts";
import type { Saving } from "./saving.ts";
import { tagList, tagsOf } from "./tags.ts";

export type Answer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer | null;
};

/** A body and the ETag of its bytes. Without `coding` the bytes are not compressed. */
export type Body = { readonly bytes: string | Buffer; readonly etag: string; readonly coding?: Coding };

export function bodyOf(text: string): Body & { readonly bytes: Buffer } {
  const bytes = Buffer.from(text);
  return { bytes, etag: etagOf(bytes) };
}

/** How caches may store free answers. */
export type CachePolicy = {
  /** Values of the headers Cache-Control (`browsers`) and CDN-Cache-Control (`cdns`, RFC 9213). */
  readonly browsers: string;
  readonly cdns: string;
  /** Whether answers carry the header Cache-Tag, by which a CDN purges them. */
  readonly tagged: boolean;
};

export const DEFAULT_CACHE_POLICY: CachePolicy = {
  browsers: "public, max-age=60",
  cdns: "public, max-age=3600, stale-while-revalidate=60, stale-if-error=86400",
  tagged: false,
};

/** What is known about a request once its app is known. */
export type Circumstances = {
  readonly appKey: string;
  /** Slug of the requested content type, whether or not that type exists; null for the catalog. */
  readonly type: string | null;
  readonly metering: Metering;
  /** How this counted request could have been free; null when it could not, or is free. */
  readonly saving: Saving | null;
  readonly fromTree: boolean;
  readonly likeFields: readonly string[];
};

const CORS = {
  "Access-Control-Allow-Origin": "*",
  "Access-Control-Expose-Headers": "ETag, X-Request-Counted, X-Request-Warning, Cache-Status, Retry-After",
};
const COMMON = { Vary: "X-App-Key", ...CORS };
/** Only the bodies of successful answers are compressed; all other answers have one coding. */
const NEGOTIATED = { Vary: "X-App-Key, Accept-Encoding" };
/** A scheme that no browser knows, so that none asks for a password. */
const CHALLENGE = { "WWW-Authenticate": 'AppKey realm="precast"' };
const METHODS = "GET, HEAD, OPTIONS";
const JSON_TYPE = { "Content-Type": "application/json; charset=utf-8" };
/** Bytes. Some proxies refuse answers whose headers together have more than 4,096. */
const MAX_WARNING_SIZE = 2_000;
const MAX_FIELD_NAME = 63;

export function preflightAnswer(): Answer {
  const headers = {
    ...COMMON,
    "Access-Control-Allow-Methods": METHODS,
    "Access-Control-Allow-Headers": "X-App-Key, Accept, If-None-Match",
    "Access-Control-Max-Age": "7200",
    Allow: METHODS,
  };
  return { status: 204, headers, body: null };
}

/** 200 with the body, or 304 when `ifNoneMatch` matches its ETag. */
export function bodyAnswer(
  { bytes, etag, coding }: Body,
  circumstances: Circumstances,
  policy: CachePolicy,
  ifNoneMatch: string | undefined,
): Answer {
  const headers = {
    ...COMMON,
    ...NEGOTIATED,
    ...circumstanceHeaders(circumstances),
    ...freshness(circumstances, policy),
    ETag: etag,
  };
  if (ifNoneMatch !== undefined && matchesEtag(ifNoneMatch, etag)) return { status: 304, headers, body: null };
  const coded = coding === undefined ? {} : { "Content-Encoding": coding };
  return { status: 200, headers: { ...headers, ...JSON_TYPE, ...coded }, body: bytes };
}

/** `circumstances` is null when the app is unknown. `tagged` is as in CachePolicy: only cacheable refusals get tags. */
export function refusalAnswer(refusal: Refusal, circumstances: Circumstances | null, tagged = false): Answer {
  const status = statusOf(refusal);
  const seconds = retryAfter(refusal);
  const isCacheable = status === 404 && circumstances?.metering.counted === false;
  const headers = {
    ...COMMON,
    ...JSON_TYPE,
    ...(circumstances === null ? {} : circumstanceHeaders(circumstances)),
    "Cache-Control": isCacheable ? "public, max-age=10" : "no-store",
    ...(isCacheable && tagged ? tagsFor(circumstances) : {}),
    ...(seconds === null ? {} : { "Retry-After": String(seconds) }),
    ...(status === 401 ? CHALLENGE : {}),
    ...(status === 405 ? { Allow: METHODS } : {}),
  };
  return { status, headers, body: errorBody(refusal) };
}

function circumstanceHeaders({ metering, fromTree, likeFields }: Circumstances): Record<string, string> {
  return {
    "X-Request-Counted": String(metering.counted),
    "Cache-Status": cacheStatus(metering, fromTree),
    ...(likeFields.length === 0 ? {} : { "X-Request-Warning": warning(likeFields) }),
  };
}

/** Value of the header Cache-Status (RFC 9211). */
function cacheStatus({ shape }: Metering, fromTree: boolean): string {
  if (isCountedShape(shape)) return "precast; fwd=bypass";
  return fromTree ? "precast; hit" : "precast; fwd=miss";
}

function freshness(circumstances: Circumstances, { browsers, cdns, tagged }: CachePolicy): Record<string, string> {
  const { counted, shape } = circumstances.metering;
  if (counted) return { "Cache-Control": shape === "search" ? "no-cache, no-store" : "private, no-cache" };
  const kept = { "Cache-Control": browsers, "CDN-Cache-Control": cdns };
  return tagged ? { ...kept, ...tagsFor(circumstances) } : kept;
}

function tagsFor({ appKey, type }: Circumstances): Record<string, string> {
  const tags = tagsOf(appKey, type);
  return tags.length === 0 ? {} : { "Cache-Tag": tagList(tags) };
}

/** No field has it in it, as headerSafe encodes blanks. */
const SEPARATOR = "; ";

function warning(likeFields: readonly string[]): string {
  const warnings = likeFields
    .map(headerSafe)
    .map((field) => `filter[${field}][like] was ignored, use filter[${field}][contains]`);
  const text = warnings.join(SEPARATOR);
  if (text.length <= MAX_WARNING_SIZE) return text;
  const shown = text.slice(0, text.lastIndexOf(SEPARATOR, MAX_WARNING_SIZE));
  const left = warnings.length - shown.split(SEPARATOR).length;
  return `${shown}${SEPARATOR}${left} more filters with like were ignored`;
}

/** Makes a field from the URL safe for a header: encodes it, and cuts it to the longest length of a field name. */
function headerSafe(field: string): string {
  const encoded = encodeURIComponent(field);
  return encoded.length <= MAX_FIELD_NAME ? encoded : `${encoded.slice(0, MAX_FIELD_NAME).replace(/%.?$/, "")}...`;
}
