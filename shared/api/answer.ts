/** Builds the status, headers and body of every answer; no other file does. Source: contract.md sections 6 and 7. */
import { hash } from "node:crypto";
import { type App, type ContentType, searchableFields, TYPE_SLUG } from "./catalog.ts";
import { findStatus, type Refusal, retryAfter } from "./errors.ts";
import { type FreeEquivalent, isCountedShape, type Price, type UsedNames } from "./pricing.ts";

export type Answer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer | null;
};

/** A body and the ETag of its bytes. Without `coding` the bytes are not compressed. */
export type Body = { readonly bytes: string | Buffer; readonly etag: string; readonly coding?: Coding };

export function makeBody(text: string): Body & { readonly bytes: Buffer } {
  const bytes = Buffer.from(text);
  return { bytes, etag: makeEtag(bytes) };
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
export type RequestContext = {
  readonly appKey: string;
  /** Slug of the requested content type, whether or not that type exists; null for the catalog. */
  readonly type: string | null;
  readonly price: Price;
  /** How this counted request could have been free; null when it could not, or is free. */
  readonly freeEquivalent: FreeEquivalent | null;
  readonly used: UsedNames;
  readonly fromTree: boolean;
  /** Value of the header X-Request-Warning; null without one. */
  readonly warning: string | null;
};

const CORS = {
  "Access-Control-Allow-Origin": "*",
  "Access-Control-Expose-Headers":
    "ETag, X-Request-Counted, X-Request-Warning, X-Request-Id, Cache-Status, Retry-After",
  "Timing-Allow-Origin": "*",
};
/** Beside what a request needs, what HTTP clients, proxies and tracing libraries of browsers add unasked. */
const ALLOWED_HEADERS = "X-App-Key, Accept, Content-Type, If-None-Match, X-Request-Id, traceparent, tracestate";
const COMMON = { Vary: "X-App-Key", ...CORS };
/** Only the bodies of successful answers are compressed; all other answers have one coding. */
const NEGOTIATED = { Vary: "X-App-Key, Accept-Encoding" };
/** A scheme that no browser knows, so that none asks for a password. */
const CHALLENGE = { "WWW-Authenticate": 'AppKey realm="precast"' };
const METHODS = "GET, HEAD, OPTIONS";
const JSON_TYPE = { "Content-Type": "application/json; charset=utf-8" };

export function preflightAnswer(): Answer {
  const headers = {
    ...COMMON,
    "Access-Control-Allow-Methods": METHODS,
    "Access-Control-Allow-Headers": ALLOWED_HEADERS,
    "Access-Control-Max-Age": "7200",
    Allow: METHODS,
  };
  return { status: 204, headers, body: null };
}

/** 200 with the body, or 304 when `ifNoneMatch` matches its ETag. */
export function bodyAnswer(
  { bytes, etag, coding }: Body,
  context: RequestContext,
  policy: CachePolicy,
  ifNoneMatch: string | undefined,
): Answer {
  const headers = {
    ...COMMON,
    ...NEGOTIATED,
    ...contextHeaders(context),
    ...freshness(context, policy),
    ETag: etag,
  };
  if (ifNoneMatch !== undefined && matchesEtag(ifNoneMatch, etag)) return { status: 304, headers, body: null };
  const coded = coding === undefined ? {} : { "Content-Encoding": coding };
  return { status: 200, headers: { ...headers, ...JSON_TYPE, ...coded }, body: bytes };
}

/** `context` is null when the app is unknown. `tagged` is as in CachePolicy: only cacheable refusals get tags. */
export function refusalAnswer(refusal: Refusal, context: RequestContext | null, tagged = false): Answer {
  const status = findStatus(refusal);
  const seconds = retryAfter(refusal);
  const isCacheable = status === 404 && context?.price.counted === false;
  const headers = {
    ...COMMON,
    ...JSON_TYPE,
    ...(context === null ? {} : contextHeaders(context)),
    "Cache-Control": isCacheable ? "public, max-age=10" : "no-store",
    ...(isCacheable && tagged ? tagsFor(context) : {}),
    ...(seconds === null ? {} : { "Retry-After": String(seconds) }),
    ...(status === 401 ? CHALLENGE : {}),
    ...(status === 405 ? { Allow: METHODS } : {}),
  };
  return { status, headers, body: errorBody(refusal) };
}

function contextHeaders({ price, fromTree, warning }: RequestContext): Record<string, string> {
  return {
    "X-Request-Counted": String(price.counted),
    "Cache-Status": cacheStatus(price, fromTree),
    ...(warning === null ? {} : { "X-Request-Warning": warning }),
  };
}

/** Value of the header Cache-Status (RFC 9211). */
function cacheStatus({ shape }: Price, fromTree: boolean): string {
  if (isCountedShape(shape)) return "precast; fwd=bypass";
  return fromTree ? "precast; hit" : "precast; fwd=miss";
}

function freshness(context: RequestContext, { browsers, cdns, tagged }: CachePolicy): Record<string, string> {
  const { counted, shape } = context.price;
  if (counted) return { "Cache-Control": shape === "search" ? "no-cache, no-store" : "private, no-cache" };
  const kept = { "Cache-Control": browsers, "CDN-Cache-Control": cdns };
  return tagged ? { ...kept, ...tagsFor(context) } : kept;
}

function tagsFor({ appKey, type }: RequestContext): Record<string, string> {
  const tags = makeTags(appKey, type);
  return tags.length === 0 ? {} : { "Cache-Tag": tagList(tags) };
}

// Puts together the bodies of answers: catalog, schema, list, search, entry, error. Source: contract.md section 2.

/** Position of a page in its list. `page` is any whole number from 1; `total` is the list's number of entries. */
type PageMeta = { readonly page: bigint; readonly perPage: number; readonly total: number };

/** `entryCounts` holds the number of published entries by type slug; a type that is absent has 0. */
export function catalogBody(app: App, entryCounts: ReadonlyMap<string, number>): string {
  const items = app.types.map((type) => ({
    ...head(type),
    entry_count: entryCounts.get(type.slug) ?? 0,
    fields: type.fields.map((field) => field.name),
    ...lists(type),
  }));
  return JSON.stringify({ data: items });
}

export function schemaBody(type: ContentType): string {
  const fields = type.fields.map(({ name, type: kind, required, label, searchable }) => ({
    name,
    type: kind,
    required,
    label,
    searchable,
  }));
  return JSON.stringify({ data: { ...head(type), fields, ...lists(type) } });
}

function head({ slug, name, description, icon }: ContentType) {
  return { slug, name, description, icon };
}

function lists(type: ContentType) {
  return {
    filterable_fields: type.filterable_fields,
    sortable_fields: type.sortable_fields,
    searchable_fields: searchableFields(type).map((field) => field.name),
  };
}

/** `items` are JSON texts. `query` is the search term, which `meta` echoes; undefined when it is not a search. */
export function listBody(items: readonly string[], meta: PageMeta, query?: string): string {
  return `{"data":[${items.join(",")}],"meta":${metaText(meta, query)}}`;
}

function metaText({ page, perPage, total }: PageMeta, query: string | undefined): string {
  const echo = query === undefined ? "" : `,"query":${JSON.stringify(query)}`;
  return `{"current_page":${page},"per_page":${perPage},"total":${total},"last_page":${lastPage(total, perPage)}${echo}}`;
}

export function lastPage(total: number, perPage: number): number {
  return Math.max(1, Math.ceil(total / perPage));
}

export function entryBody(entry: string): string {
  return `{"data":${entry}}`;
}

function errorBody({ code, message, parameter }: Refusal): string {
  return JSON.stringify({ error: { code, message, ...(parameter === null ? {} : { parameter }) } });
}

const [OPENING, CLOSING] = Buffer.from("{}");

/** Whether a body begins and ends like every body: a power failure can leave files empty, cut or full of zeros. */
export function isWholeBody(bytes: Buffer): boolean {
  return bytes.at(0) === OPENING && bytes.at(-1) === CLOSING;
}

// ETags: what identifies the bytes of a body, and when a client has them already. Source: RFC 9110 section 8.8.3.

/** Content codings in which the server sends bodies (RFC 9110 section 8.4.1). */
export type Coding = "br" | "gzip";

/** The strong ETag of a body's bytes (RFC 9110 section 8.8.3). */
export function makeEtag(bytes: string | Buffer): string {
  return `"${hash("sha256", bytes, "base64url").slice(0, 27)}"`;
}

/** The ETag of the same body when compressed: other bytes need another ETag (RFC 9110 section 8.8.3.3). */
export function codedEtag(etag: string, coding: Coding): string {
  return `${etag.slice(0, -1)}-${coding}"`;
}

/** If-None-Match compares weakly (RFC 9110 section 13.1.2). */
export function matchesEtag(ifNoneMatch: string, etag: string): boolean {
  if (ifNoneMatch === etag) return true;
  return ifNoneMatch.split(",").some((part) => {
    const tag = part.trim();
    return tag === "*" || tag.replace(/^W\//, "") === etag;
  });
}

// Defines the tags by which a CDN purges answers. Deployed files and the server's answers have the same tags.

/** The tag of all answers of the app, then ownTag. `type` is null for the catalog. Empty for what cannot be a slug. */
export function makeTags(app: string, type: string | null): readonly string[] {
  return type === null || TYPE_SLUG.test(type) ? [app, ownTag(app, type)] : [];
}

/** The narrowest tag of an answer: its type's. The catalog has a tag of its own, because it changes most often. */
export function ownTag(app: string, type: string | null): string {
  return `${app}/${type ?? "_schemas"}`;
}

/** The tags in the syntax of the header Cache-Tag and of the metadata of deployed files. */
export function tagList(tags: readonly string[]): string {
  return tags.join(",");
}
