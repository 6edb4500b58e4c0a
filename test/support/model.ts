/**
 * The contract as a slow program: it answers requests as `shared/contract.md` says, by scanning arrays in
 * memory.
 *
 * It shares no code with the product, so that the two agree only when both are right. What it leaves open
 * are messages, the rank within a search group, and the text of an ETag.
 */

import type { Bundle, BundleEntry, BundleType } from "./model-bundle.ts";
import { entryId, findBundleType, publishedEntries } from "./model-bundle.ts";
import type { Json, Owner } from "./model-entry.ts";
import {
  catalogItem,
  catalogOrder,
  namedIn,
  renderEntry,
  renderSingle,
  schemaOf,
  usualListItem,
  usualSearchItem,
} from "./model-entry.ts";
import type { Fault, ModelSort } from "./model-filter.ts";
import {
  compareNewest,
  defaultSort,
  filterFault,
  isFilterable,
  isUnreadable,
  keepMatching,
  readSort,
  sortEntries,
} from "./model-filter.ts";
import type { ModelFilter, ModelParameters, ModelRoute } from "./model-request.ts";
import { readFilters, readTarget } from "./model-request.ts";
import { searchGroups } from "./model-search.ts";
import { uuidOf } from "./model-value.ts";

export type { Bundle, BundleEntry, BundleField, BundleType } from "./model-bundle.ts";
export { relevanceFault } from "./model-relevance.ts";
export { searchGroups } from "./model-search.ts";

export type ModelRequest = { method: string; target: string; appKey?: string };
export type ModelOptions = { mediaBaseUrl: string };

/** The headers whose value or presence the contract fixes. `true`: present, with any text. */
export type ModelHeaders = {
  "content-type"?: string;
  "x-request-counted"?: "true" | "false";
  "cache-control"?: string;
  "cdn-cache-control"?: string;
  vary?: string;
  etag?: true;
  "x-request-warning"?: true;
  allow?: string;
  "access-control-allow-origin"?: string;
  "access-control-expose-headers"?: string;
  "access-control-allow-methods"?: string;
  "access-control-allow-headers"?: string;
  "access-control-max-age"?: string;
  "timing-allow-origin"?: string;
};

export type ModelAnswer = {
  status: number;
  /** null: no `X-Request-Counted`, because the app is unknown or was not looked up. */
  counted: boolean | null;
  /** Parsed JSON; undefined where there is no body (204, HEAD). An error's has no `message`. */
  body: unknown;
  errorCode?: string;
  /** `groups`: any order within each of `groups`, see `relevanceFault`. */
  order?: "exact" | "groups";
  /** The ids of the full-word group and those of the other group, of all entries found and not only of the page. */
  groups?: string[][];
  /** Every item that was found, in a relevance search. */
  items?: Json[];
  headers: ModelHeaders;
};

/** An answer before metering and headers. */
type Outcome =
  | { status: 200; body: Json; order?: "exact" | "groups"; groups?: string[][]; items?: Json[] }
  | { status: 400 | 401 | 404 | 405; code: string; parameter?: string };

/** The parameters of a list or a search, parsed. */
type Question = { filters: ModelFilter[]; sort: ModelSort | undefined; page: bigint; perPage: number };

type Known = { owner: Owner; type: BundleType; parameters: ModelParameters };

/** What follows from the shape of a request to a known app: counting, caching, the warnings. */
type Shape = { counted: boolean; isSearch: boolean; warns: boolean };

export function ask(bundles: readonly Bundle[], request: ModelRequest, options: ModelOptions): ModelAnswer {
  if (request.method === "OPTIONS") return preflight();
  const answer = ["GET", "HEAD"].includes(request.method)
    ? get(bundles, request, options)
    : finish({ status: 405, code: "METHOD_NOT_ALLOWED" }, undefined);
  return request.method === "HEAD" ? { ...answer, body: undefined } : answer;
}

function preflight(): ModelAnswer {
  const headers: ModelHeaders = {
    "access-control-allow-origin": "*",
    "access-control-allow-methods": "GET, HEAD, OPTIONS",
    "access-control-allow-headers":
      "X-App-Key, Accept, Content-Type, If-None-Match, X-Request-Id, traceparent, tracestate",
    "access-control-max-age": "7200",
  };
  return { status: 204, counted: null, body: undefined, headers };
}

/** Method, route, app key, content type, entry id, parameters: the first failure is the answer. */
function get(bundles: readonly Bundle[], request: ModelRequest, options: ModelOptions): ModelAnswer {
  const { route, parameters } = readTarget(request.target);
  if (!route) return finish({ status: 404, code: "NOT_FOUND" }, undefined);
  if (!request.appKey) return finish({ status: 401, code: "MISSING_APP_KEY" }, undefined);
  const bundle = bundles.find((one) => one.app.key === request.appKey);
  if (!bundle) return finish({ status: 401, code: "INVALID_APP_KEY" }, undefined);
  const owner = { bundle, mediaBaseUrl: bundle.app.media_base_url ?? options.mediaBaseUrl };
  return finish(outcomeOf(owner, route, parameters), shapeOf(bundle, route, parameters));
}

function outcomeOf(owner: Owner, route: ModelRoute, parameters: ModelParameters): Outcome {
  if (route.kind === "catalog") return catalog(owner.bundle);
  const type = findBundleType(owner.bundle, route.slug);
  if (!type) return { status: 404, code: "CONTENT_TYPE_NOT_FOUND" };
  switch (route.kind) {
    case "schema":
      return { status: 200, body: { data: schemaOf(type) } };
    case "list":
      return list({ owner, type, parameters });
    case "search":
      return search({ owner, type, parameters });
    case "entry":
      return single({ owner, type, parameters }, route.id);
  }
}

function catalog(bundle: Bundle): Outcome {
  const published = bundle.types.filter((type) => type.published !== false);
  return { status: 200, body: { data: catalogOrder(published).map((type) => catalogItem(bundle, type)) } };
}

function single({ owner, type, parameters }: Known, id: string): Outcome {
  const uuid = uuidOf(id);
  const entry = publishedEntries(owner.bundle, type).find((one) => entryId(one) === uuid);
  if (!entry) return { status: 404, code: "ENTRY_NOT_FOUND" };
  const populate = parameters.get("populate") ?? "";
  if (lengthOf(populate) > 500) return refuse({ code: "INVALID_POPULATE", parameter: "populate" });
  return { status: 200, body: { data: renderSingle(owner, type, entry, populate) } };
}

function list(known: Known): Outcome {
  const { owner, type, parameters } = known;
  const question = readQuestion(known, type.per_page ?? 20);
  if ("code" in question) return refuse(question);
  const found = keepMatching(type, question.filters, publishedEntries(owner.bundle, type));
  const sorted = sortEntries(found, question.sort ?? defaultSort(type));
  const wanted = wantedOf(parameters, usualListItem(type));
  const data = pageOf(sorted, question).map((entry) => renderEntry(owner, type, entry, wanted));
  return { status: 200, body: { data, meta: metaOf(sorted.length, question) }, order: "exact" };
}

function search(known: Known): Outcome {
  const { owner, type, parameters } = known;
  const question = readQuestion(known, 20);
  if ("code" in question) return refuse(question);
  const query = (parameters.get("q") ?? "").trim();
  if (lengthOf(query) < 2 || lengthOf(query) > 200) return refuse({ code: "INVALID_QUERY", parameter: "q" });
  const matching = keepMatching(type, question.filters, publishedEntries(owner.bundle, type));
  const { full, partial } = searchGroups(type, matching, query);
  const meta = { ...metaOf(full.length + partial.length, question), query };
  const wanted = wantedOf(parameters, usualSearchItem(type));
  const render = (entry: BundleEntry) => renderEntry(owner, type, entry, wanted);
  if (question.sort) {
    const data = pageOf(sortEntries([...full, ...partial], question.sort), question).map(render);
    return { status: 200, body: { data, meta }, order: "exact" };
  }
  const ranked = [...full.toSorted(compareNewest), ...partial.toSorted(compareNewest)];
  const body = { data: pageOf(ranked, question).map(render), meta };
  return { status: 200, body, order: "groups", groups: [full, partial].map(idsOf), items: ranked.map(render) };
}

/** Checks and reads what lists and searches share, in the contract's order: filter, sort, page, per_page, fields. */
function readQuestion({ type, parameters }: Known, usualPerPage: number): Question | Fault {
  const { filters } = readFilters(parameters);
  const fault = filterFault(type, filters);
  if (fault) return fault;
  const sort = parameters.get("sort");
  const readable = sort === undefined || lengthOf(sort) > 100 ? undefined : readSort(type, sort);
  if (sort !== undefined && !readable) return { code: "INVALID_SORT", parameter: "sort" };
  const page = wholeNumber(parameters.get("page") ?? "1");
  if (page === undefined || page < 1n) return { code: "INVALID_PAGE", parameter: "page" };
  const perPage = wholeNumber(parameters.get("per_page") ?? String(usualPerPage));
  if (perPage === undefined || perPage < 1n || perPage > 100n)
    return { code: "INVALID_PER_PAGE", parameter: "per_page" };
  if (lengthOf(parameters.get("fields") ?? "") > 500) return { code: "INVALID_FIELDS", parameter: "fields" };
  return { filters, sort: readable, page, perPage: Number(perPage) };
}

function wholeNumber(text: string): bigint | undefined {
  return /^[0-9]+$/.test(text) ? BigInt(text) : undefined;
}

function wantedOf(parameters: ModelParameters, usual: (name: string) => boolean): (name: string) => boolean {
  const fields = parameters.get("fields");
  return fields === undefined ? usual : namedIn(fields);
}

function pageOf(entries: readonly BundleEntry[], { page, perPage }: Question): BundleEntry[] {
  const first = (page - 1n) * BigInt(perPage);
  return entries.filter((_, index) => BigInt(index) >= first && BigInt(index) < first + BigInt(perPage));
}

function metaOf(total: number, { page, perPage }: Question): Json {
  const lastPage = Math.max(1, Math.ceil(total / perPage));
  return { current_page: Number(page), per_page: perPage, total, last_page: lastPage };
}

function idsOf(entries: readonly BundleEntry[]): string[] {
  return entries.map(entryId);
}

/** Lengths are code points. */
function lengthOf(text: string): number {
  return [...text].length;
}

function refuse(fault: Fault): Outcome {
  return { status: 400, ...fault };
}

/** The table of contract section 5. */
function shapeOf(bundle: Bundle, route: ModelRoute, parameters: ModelParameters): Shape {
  const isSearch = route.kind === "search";
  const warns = (isSearch || route.kind === "list") && isWarned(findBundleType(bundle, route.slug), parameters);
  return { counted: isCounted(bundle, route, parameters), isSearch, warns };
}

/** A warning tells of `like`, and of values of equalities that cannot be read as their field's type. */
function isWarned(type: BundleType | undefined, parameters: ModelParameters): boolean {
  const { filters, liked } = readFilters(parameters);
  return liked.length > 0 || filters.some((filter) => isUnreadable(type, filter));
}

function isCounted(bundle: Bundle, route: ModelRoute, parameters: ModelParameters): boolean {
  switch (route.kind) {
    case "catalog":
    case "schema":
      return false;
    case "entry":
      return parameters.has("populate");
    case "search":
      return true;
    case "list":
      return isCountedList(findBundleType(bundle, route.slug), parameters);
  }
}

function isCountedList(type: BundleType | undefined, parameters: ModelParameters): boolean {
  const { filters } = readFilters(parameters);
  const others = ["sort", "page", "per_page", "fields"].filter((name) => parameters.has(name));
  const [only] = [...filters.map(() => "filter"), ...others];
  if (filters.length + others.length > 1) return true;
  switch (only) {
    case undefined:
    case "page":
      return false;
    case "filter":
      return !filters.every((filter) => filter.operator === "eq" && isFilterable(type, filter.field));
    case "sort":
      return readSort(type, parameters.get("sort") ?? "") === undefined;
    default:
      return true;
  }
}

function finish(outcome: Outcome, shape: Shape | undefined): ModelAnswer {
  const headers = headersOf(outcome.status, shape);
  const counted = shape?.counted ?? null;
  if (outcome.status === 200) return { counted, headers, ...outcome };
  const { status, ...error } = outcome;
  return { status, counted, body: { error }, errorCode: error.code, headers };
}

function headersOf(status: number, shape: Shape | undefined): ModelHeaders {
  const isCacheable = status === 200 && shape?.counted === false;
  return {
    "content-type": "application/json; charset=utf-8",
    ...(shape && { "x-request-counted": shape.counted ? "true" : "false" }),
    "cache-control": cacheControl(status, shape),
    ...(isCacheable && {
      "cdn-cache-control": "public, max-age=3600, stale-while-revalidate=60, stale-if-error=86400",
    }),
    vary: status === 200 ? "X-App-Key, Accept-Encoding" : "X-App-Key",
    ...(status === 200 && { etag: true as const }),
    ...(shape?.warns && { "x-request-warning": true as const }),
    ...(status === 405 && { allow: "GET, HEAD, OPTIONS" }),
    "access-control-allow-origin": "*",
    "access-control-expose-headers":
      "ETag, X-Request-Counted, X-Request-Warning, X-Request-Id, Cache-Status, Retry-After",
    "timing-allow-origin": "*",
  };
}

function cacheControl(status: number, shape: Shape | undefined): string {
  if (status === 404 && shape?.counted === false) return "public, max-age=10";
  if (status !== 200 || !shape) return "no-store";
  if (shape.isSearch) return "no-cache, no-store";
  return shape.counted ? "private, no-cache" : "public, max-age=60";
}
