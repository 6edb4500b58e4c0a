/** Defines all refusals: code, status, message. A refusal is returned, never thrown. Source: contract.md section 6. */
import { findNearest } from "../text.ts";
import { APP_KEY, type ContentType, findColumn, listSortable, MAX_PER_PAGE } from "./catalog.ts";

export const STATUS = {
  BAD_REQUEST: 400,
  INVALID_FILTER: 400,
  INVALID_OPERATOR: 400,
  TOO_MANY_FILTERS: 400,
  INVALID_FILTER_VALUE: 400,
  INVALID_SORT: 400,
  INVALID_PAGE: 400,
  INVALID_PER_PAGE: 400,
  INVALID_FIELDS: 400,
  INVALID_POPULATE: 400,
  INVALID_QUERY: 400,
  MISSING_APP_KEY: 401,
  INVALID_APP_KEY: 401,
  NOT_FOUND: 404,
  CONTENT_TYPE_NOT_FOUND: 404,
  ENTRY_NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  REQUEST_TIMEOUT: 408,
  URI_TOO_LONG: 414,
  HEADERS_TOO_LARGE: 431,
  INTERNAL_ERROR: 500,
  OVERLOADED: 503,
  DATABASE_UNAVAILABLE: 503,
  QUERY_TIMEOUT: 504,
} as const;

export type RefusalCode = keyof typeof STATUS;

export type Refusal = {
  readonly kind: "refusal";
  readonly code: RefusalCode;
  readonly message: string;
  /** The parameter that is to blame, as a client would write it: `filter[colour]`. Null when none is. */
  readonly parameter: string | null;
};

/** Largest request target in bytes. URLs of the SDKs need a tenth of it. */
export const MAX_TARGET_SIZE = 16_384;
/** Largest size of all header lines together, in bytes, and their largest number: what common proxies accept. */
export const MAX_HEADERS_SIZE = 16_384;
export const MAX_HEADERS = 100;
export const MAX_FILTERS = 10;
/** Time limit of a live query, in seconds. */
export const QUERY_SECONDS = 5;
export const MAX_SORT_LENGTH = 100;
export const MAX_NAMES_LENGTH = 500;
export const MIN_QUERY_LENGTH = 2;
export const MAX_QUERY_LENGTH = 200;

/** Tells a refusal from whatever else a function may return in its place. */
export function isRefusal(value: unknown): value is Refusal {
  return typeof value === "object" && value !== null && "kind" in value && value.kind === "refusal";
}

export function findStatus(refusal: Refusal): number {
  return STATUS[refusal.code];
}

/** Whether the cause is the server, not the request, so that the same request may succeed later. */
export function isTemporary(refusal: Refusal): boolean {
  return findStatus(refusal) >= 500;
}

/** Value of Retry-After in seconds; null for a refusal that has none. */
export function retryAfter(refusal: Refusal): number | null {
  return refusal.code === "OVERLOADED" || refusal.code === "DATABASE_UNAVAILABLE" ? 1 : null;
}

function refuse(code: RefusalCode, message: string, parameter: string | null = null): Refusal {
  return { kind: "refusal", code, message, parameter };
}

/** Says that a name is none of `allowed`, the fields of a kind, and which one it may stand for. */
function describeMiss(
  type: ContentType,
  name: string,
  kind: "filterable" | "sortable",
  allowed: readonly string[],
): string {
  return findColumn(type, name) === undefined
    ? `${quote(name)} is no ${kind} field of '${type.slug}'.${suggest(name, allowed)}`
    : `${quote(name)} is a field of '${type.slug}', but not a ${kind} one.`;
}

function suggest(name: string, allowed: readonly string[]): string {
  const nearest = findNearest(name, allowed);
  return nearest === null ? "" : ` Did you mean ${nearest}?`;
}

/** Repeats a name from a URL only where it could be one: a message never carries other text of a client. */
function quote(name: string): string {
  return /^[\w.-]{1,64}$/.test(name) ? `'${name}'` : "That";
}

/** The client did not send HTTP that this server understands. `fault` says what is wrong, as a sentence. */
export const badRequest = (fault: string) =>
  refuse("BAD_REQUEST", `${fault} Send valid HTTP/1.1 requests (RFC 9112), one after another.`);

export const notEncoded = () =>
  refuse(
    "BAD_REQUEST",
    "The path or the query contains characters that RFC 3986 does not allow in a URL. Percent-encode them as UTF-8: é is %C3%A9, a space is %20.",
  );

export const targetTooLong = () =>
  refuse("URI_TOO_LONG", `The path and the query are too long: at most ${MAX_TARGET_SIZE} bytes are allowed.`);

export const headersTooLarge = () =>
  refuse(
    "HEADERS_TOO_LARGE",
    `The headers are too many or too large: at most ${MAX_HEADERS} headers of ${MAX_HEADERS_SIZE} bytes in total are allowed.`,
  );

export const requestTimeout = (seconds: number) =>
  refuse("REQUEST_TIMEOUT", `The request was not complete after ${seconds} seconds. Send it without pauses.`);

export const methodNotAllowed = (method: string) =>
  refuse("METHOD_NOT_ALLOWED", `${method} is not allowed. This API accepts only GET, HEAD and OPTIONS.`);

export const routeNotFound = () =>
  refuse(
    "NOT_FOUND",
    "There is no such endpoint. The endpoints are /api/v1/_schemas, /api/v1/_schemas/{contentType}, /api/v1/{contentType}, " +
      "/api/v1/{contentType}/search and /api/v1/{contentType}/{uuid}.",
  );

export const missingAppKey = () => refuse("MISSING_APP_KEY", "Send the key of the app in the header X-App-Key.");

export const unknownAppKey = (key: string) =>
  refuse(
    "INVALID_APP_KEY",
    APP_KEY.test(key)
      ? "No app has the key in X-App-Key. Keys are case-sensitive."
      : "The value of X-App-Key is not an app key: a key has 1 to 128 letters, digits, '_' and '-', and begins with a letter or digit.",
  );

export const typeNotFound = () =>
  refuse(
    "CONTENT_TYPE_NOT_FOUND",
    "This app has no published content type with that name. /api/v1/_schemas lists the published ones.",
  );

export const entryNotFound = () =>
  refuse("ENTRY_NOT_FOUND", "This content type has no published entry with that id. Ids are UUIDs.");

export const tooManyFilters = (count: number) =>
  refuse("TOO_MANY_FILTERS", `The request has ${count} filter fields: at most ${MAX_FILTERS} are allowed.`, "filter");

/** `field` is null when the name of the parameter is malformed. */
export function badFilter(type: ContentType, field: string | null, parameter: string): Refusal {
  const { slug, filterable_fields: allowed } = type;
  const fault =
    field === null
      ? "A filter is filter[field]=value or filter[field][operator]=value."
      : describeMiss(type, field, "filterable", allowed);
  const names = allowed.length === 0 ? "It has none." : `Filterable fields of '${slug}': ${allowed.join(", ")}.`;
  return refuse("INVALID_FILTER", `${fault} ${names}`, parameter);
}

/** What other APIs call the operators, in small letters alone. */
const OTHER_NAMES: { readonly [operator: string]: readonly string[] } = {
  eq: ["equals", "equal", "is", "exact"],
  neq: ["ne", "not", "noteq", "notequals", "notequal", "isnot"],
  gt: ["greaterthan", "after", "above"],
  gte: ["ge", "min", "from", "since"],
  lt: ["lessthan", "before", "below"],
  lte: ["le", "max", "to", "until"],
  contains: ["ilike", "icontains", "includes", "has", "match"],
  starts_with: ["prefix", "beginswith", "istartswith"],
  in: ["any", "anyof", "oneof"],
  nin: ["notin", "noneof"],
};

export function badOperator(operators: readonly string[], operator: string, parameter: string): Refusal {
  const name = operator.toLowerCase().replace(/[^a-z]/g, "");
  const other = Object.keys(OTHER_NAMES).find((one) => OTHER_NAMES[one]?.includes(name));
  const meant = other === undefined ? suggest(operator, operators) : ` Did you mean ${other}?`;
  const fault = `${quote(operator)} is no filter operator.${meant}`;
  return refuse("INVALID_OPERATOR", `${fault} Operators: ${operators.join(", ")}.`, parameter);
}

export const badFilterValue = (expected: string, parameter: string) =>
  refuse("INVALID_FILTER_VALUE", expected, parameter);

export function badSort(type: ContentType, sort: string): Refusal {
  const allowed = listSortable(type);
  const rule = `sort is one field, with a leading '-' for descending order, of at most ${MAX_SORT_LENGTH} characters.`;
  const field = sort.replace(/^-/, "");
  const isName = /^\w+$/.test(field) && sort.length <= MAX_SORT_LENGTH;
  const fault = isName ? describeMiss(type, field, "sortable", allowed) : rule;
  return refuse("INVALID_SORT", `${fault} Sortable fields of '${type.slug}': ${allowed.join(", ")}.`, "sort");
}

export const badPage = () => refuse("INVALID_PAGE", "page must be a whole number of at least 1.", "page");

export const badPerPage = () =>
  refuse("INVALID_PER_PAGE", `per_page must be a whole number from 1 to ${MAX_PER_PAGE}.`, "per_page");

export const badFields = () =>
  refuse("INVALID_FIELDS", `fields must have at most ${MAX_NAMES_LENGTH} characters.`, "fields");

export const badPopulate = () =>
  refuse("INVALID_POPULATE", `populate must have at most ${MAX_NAMES_LENGTH} characters.`, "populate");

export const badQuery = () =>
  refuse(
    "INVALID_QUERY",
    `q is required and must have ${MIN_QUERY_LENGTH} to ${MAX_QUERY_LENGTH} characters, not counting whitespace at either end.`,
    "q",
  );

export const INTERNAL_ERROR = refuse(
  "INTERNAL_ERROR",
  "The server failed to answer because of an internal error. The error has been logged.",
);

export const OVERLOADED = refuse("OVERLOADED", "Too many live requests are in progress. Try again shortly.");

export const DATABASE_UNAVAILABLE = refuse(
  "DATABASE_UNAVAILABLE",
  "Live data is not available at the moment. Try again shortly.",
);

export const QUERY_TIMEOUT = refuse(
  "QUERY_TIMEOUT",
  `The query took longer than ${QUERY_SECONDS} seconds and was cancelled.`,
);
