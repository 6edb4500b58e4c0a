/** Describes answers: their headers, and the errors of each endpoint. Source: shared/contract.md sections 6 and 7. */
import { type RefusalCode, STATUS } from "../../shared/api/errors.ts";
import type { Route } from "../../shared/api/request.ts";

export type Json = { readonly [key: string]: unknown };

const TEXT = { type: "string" };

const HEADERS = {
  "X-Request-Counted": { description: "Whether the request was counted.", schema: { type: "boolean" } },
  "X-Request-Warning": { description: "What of the request has no effect, and what would.", schema: TEXT },
  "X-Request-Id": { description: "The request's own id if it sent one, else a new one.", schema: TEXT },
  "Cache-Status": {
    description: "What answered: the tree, or the database.",
    schema: { ...TEXT, enum: ["precast; hit", "precast; fwd=miss", "precast; fwd=bypass"] },
  },
  ETag: {
    description: "Identifies the bytes of the body. Send it in If-None-Match to be told that they are the same.",
    schema: { ...TEXT, pattern: '^"[^"]+"$' },
  },
  "Cache-Control": { description: "How long browsers may keep the answer.", schema: TEXT },
  "CDN-Cache-Control": { description: "How long CDNs may keep an answer that is not counted.", schema: TEXT },
  Vary: { description: "The headers of the request that the answer depends on.", schema: TEXT },
  "Retry-After": { description: "Seconds after which to try again.", schema: { type: "integer", minimum: 1 } },
  "WWW-Authenticate": { description: "The key of an app is missing or wrong.", schema: TEXT },
} as const;
type Header = keyof typeof HEADERS;

const ALWAYS: readonly Header[] = ["Vary", "Cache-Control"];
/** Of every answer whose app is known. */
const KNOWN: readonly Header[] = ["X-Request-Counted", "Cache-Status", ...ALWAYS];
/** An edge that answers from the tree has no ids. */
const SOMETIMES: readonly Header[] = ["X-Request-Id", "X-Request-Warning"];

function describeHeaders(always: readonly Header[], sometimes: readonly Header[]): Json {
  return Object.fromEntries([
    ...always.map((name) => [name, { ...HEADERS[name], required: true }]),
    ...sometimes.map((name) => [name, HEADERS[name]]),
  ]);
}

const FOUND = describeHeaders([...KNOWN, "ETag"], ["CDN-Cache-Control", ...SOMETIMES]);

export function describeFound(description: string, schema: Json, example: unknown): Json {
  const content = { schema, ...(example === undefined ? {} : { example }) };
  return { description, headers: FOUND, content: { "application/json": content } };
}

const LIST_CODES = [
  ...["INVALID_FILTER", "INVALID_OPERATOR", "TOO_MANY_FILTERS", "INVALID_FILTER_VALUE"],
  ...["INVALID_SORT", "INVALID_PAGE", "INVALID_PER_PAGE", "INVALID_FIELDS"],
] as RefusalCode[];

/** The errors of endpoints, by the names of their descriptions. All codes of one have one status. */
const ERRORS = {
  AppUnknown: ["MISSING_APP_KEY", "INVALID_APP_KEY"],
  TypeUnknown: ["CONTENT_TYPE_NOT_FOUND"],
  EntryUnknown: ["CONTENT_TYPE_NOT_FOUND", "ENTRY_NOT_FOUND"],
  ListRefused: LIST_CODES,
  SearchRefused: [...LIST_CODES, "INVALID_QUERY"],
  PopulateRefused: ["INVALID_POPULATE"],
  Failed: ["INTERNAL_ERROR"],
  Unavailable: ["OVERLOADED", "DATABASE_UNAVAILABLE"],
  TooSlow: ["QUERY_TIMEOUT"],
} as const satisfies Record<string, readonly RefusalCode[]>;
type ErrorName = keyof typeof ERRORS;

const OWN: Record<Route["kind"], readonly ErrorName[]> = {
  catalog: [],
  schema: ["TypeUnknown"],
  list: ["ListRefused", "TypeUnknown"],
  search: ["SearchRefused", "TypeUnknown"],
  entry: ["PopulateRefused", "EntryUnknown"],
};

/** The responses of an endpoint, by status. `found` describes its 200. */
export function describeResponses(kind: Route["kind"], found: Json): Json {
  const errors: readonly ErrorName[] = ["AppUnknown", ...OWN[kind], "Failed", "Unavailable", "TooSlow"];
  const refer = (name: string) => ({ $ref: `#/components/responses/${name}` });
  return {
    200: found,
    304: refer("Unchanged"),
    ...Object.fromEntries(errors.map((name) => [findErrorStatus(name), refer(name)])),
    default: refer("Malformed"),
  };
}

/** What `describeResponses` refers to. */
export function describeSharedResponses(): Json {
  const errors = Object.keys(ERRORS).map((name) => [name, describeError(name as ErrorName)]);
  const content = { "application/json": { schema: { $ref: "#/components/schemas/ApiError" } } };
  return {
    Unchanged: { description: "The client has these bytes: it sent their ETag in If-None-Match.", headers: FOUND },
    ...Object.fromEntries(errors),
    Malformed: { description: "What was sent is no HTTP request that the server accepts.", content },
  };
}

function describeError(name: ErrorName): Json {
  const codes: readonly RefusalCode[] = ERRORS[name];
  const status = findErrorStatus(name);
  const code = { type: "object", properties: { code: { type: "string", enum: codes } } };
  const narrowed = { type: "object", properties: { error: code } };
  const schema = { allOf: [{ $ref: "#/components/schemas/ApiError" }, narrowed] };
  return { description: codes.join(", "), headers: headersOf(status), content: { "application/json": { schema } } };
}

function findErrorStatus(name: ErrorName): number {
  return STATUS[ERRORS[name][0]];
}

/** Where the server fails, the app may not be known yet. */
function headersOf(status: number): Json {
  if (status === 401) return describeHeaders([...ALWAYS, "WWW-Authenticate"], ["X-Request-Id"]);
  if (status < 500) return describeHeaders(KNOWN, SOMETIMES);
  const retry: readonly Header[] = status === 503 ? ["Retry-After"] : [];
  return describeHeaders([...ALWAYS, ...retry], ["X-Request-Counted", "Cache-Status", ...SOMETIMES]);
}
