/**
 * Parses a request: method, raw target and app key become an ApiRequest or a refusal. Checks the syntax only, not
 * whether a type, field or value exists. Source: shared/contract.md section 3.
 */
import { methodNotAllowed, missingAppKey, type Refusal, routeNotFound } from "./errors.ts";

export type Route =
  | { readonly kind: "catalog" }
  | { readonly kind: "schema"; readonly slug: string }
  | { readonly kind: "list"; readonly slug: string }
  | { readonly kind: "search"; readonly slug: string }
  | { readonly kind: "entry"; readonly slug: string; readonly id: string };

/** A filter as sent. `field` is null when the name of the parameter is malformed, as in `filter[]=x`. */
export type Filter = {
  /** Name of the parameter, as a client would write it: `filter[title]`, `filter[year][gte]`. */
  readonly parameter: string;
  readonly field: string | null;
  readonly operator: string;
  readonly value: string;
};

type Scalar = "sort" | "page" | "per_page" | "fields" | "populate" | "q";

/** The parameters that the endpoint defines and that were sent with a value. Of a repeated one, the last value. */
export type RequestParameters = { readonly filters: readonly Filter[] } & { readonly [name in Scalar]?: string };

export type ApiRequest = {
  readonly kind: "request";
  readonly appKey: string;
  readonly route: Route;
  readonly parameters: RequestParameters;
  /** The fields whose filter with the operator `like` was dropped. */
  readonly likeFields: readonly string[];
};

export type RawRequest = { readonly method: string; readonly target: string; readonly appKey: string | undefined };

/** HEAD is read and counted as GET. */
export const METHODS: readonly string[] = ["GET", "HEAD"];
export const PARAMETERS_OF: Record<Route["kind"], readonly string[]> = {
  catalog: [],
  schema: [],
  list: ["filter", "sort", "page", "per_page", "fields"],
  search: ["filter", "sort", "page", "per_page", "fields", "q"],
  entry: ["populate"],
};

/** What cannot stand in the name of a parameter as it is. */
const UNSAFE = /[^\w[\]-]+/g;

export function readRequest(raw: RawRequest): ApiRequest | { readonly kind: "preflight" } | Refusal {
  if (raw.method === "OPTIONS") return { kind: "preflight" };
  if (!METHODS.includes(raw.method)) return methodNotAllowed(raw.method);
  const { path, query } = splitTarget(raw.target);
  const route = readRoute(path);
  if (route === null) return routeNotFound();
  if (!raw.appKey) return missingAppKey();
  return { kind: "request", appKey: raw.appKey, route, ...readQuery(query, route.kind) };
}

/**
 * The request target of what a person writes, which may begin with an origin and may omit the base path. Percent-encodes
 * what no URL may contain, as clients do.
 */
export function completeTarget(text: string): string {
  const encoded = text.replace(/[^!-~]/gu, encodeURIComponent);
  const target = encoded.replace(/^https?:\/\/[^/?#]*/, "");
  const path = target.startsWith("/") ? target : `/${target}`;
  return /^\/api\/v1(\/|$)/.test(path) ? path : `/api/v1${path}`;
}

/** Splits a request target, which may also be in absolute form (RFC 9112 section 3.2.2). */
export function splitTarget(target: string): { path: string; query: string } {
  const origin = target.replace(/^https?:\/\/[^/?]*/i, "");
  const mark = origin.indexOf("?");
  return mark < 0 ? { path: origin, query: "" } : { path: origin.slice(0, mark), query: origin.slice(mark + 1) };
}

/** Splits the raw path at its slashes, normalises nothing and decodes each segment once. */
function readRoute(path: string): Route | null {
  const segments = decodeSegments(path.replace(/\/$/, ""));
  if (segments === null) return null;
  const [root, api, version, first, second, ...rest] = segments;
  if (root !== "" || api !== "api" || version !== "v1" || !first || second === "" || rest.length > 0) return null;
  if (first === "_schemas") return second === undefined ? { kind: "catalog" } : { kind: "schema", slug: second };
  if (second === undefined) return { kind: "list", slug: first };
  return second === "search" ? { kind: "search", slug: first } : { kind: "entry", slug: first, id: second };
}

function decodeSegments(path: string): string[] | null {
  try {
    return path.split("/").map(decodeURIComponent);
  } catch {
    return null;
  }
}

/** Reads the parameters that the endpoint defines. */
export function readQuery(query: string, kind: Route["kind"]): Pick<ApiRequest, "parameters" | "likeFields"> {
  const defined = PARAMETERS_OF[kind];
  const filters = new Map<string, Filter>();
  const scalars = new Map<string, string>();
  const likeFields = new Set<string>();
  for (const [name, value] of new URLSearchParams(`?${query}`)) {
    if (value === "") continue;
    if (name !== "filter" && !name.startsWith("filter[")) {
      if (defined.includes(name)) scalars.set(name, value);
    } else if (defined.includes("filter")) {
      const like = /^filter\[([^\]]+)\]\[like\]$/.exec(name)?.[1];
      if (like !== undefined) likeFields.add(like);
      else {
        const filter = readFilter(name, value);
        filters.set(filter.parameter, filter);
      }
    }
  }
  return {
    parameters: { ...Object.fromEntries(scalars), filters: [...filters.values()] },
    likeFields: [...likeFields],
  };
}

/** `filter[f]=v` and `filter[f][eq]=v` are one parameter. Malformed brackets make the operator unknown. */
function readFilter(name: string, value: string): Filter {
  const match = /^filter\[([^\]]+)\](?:\[(.*))?$/s.exec(name);
  if (match === null) return { parameter: name, field: null, operator: "eq", value };
  const [, field = "", written = "eq]"] = match;
  const operator = written.replace(/\]$/, "");
  const closed = written.endsWith("]");
  if (operator === "eq" && closed) return { parameter: `filter[${field}]`, field, operator, value };
  return { parameter: name, field, operator: closed ? operator : `${operator}[`, value };
}

/** The query of a request with these parameters, from the question mark on. */
export function writeQuery({ filters, ...scalars }: RequestParameters): string {
  return writePairs([
    ...filters.map(({ parameter, value }) => [parameter, value] as const),
    ...Object.entries(scalars),
  ]);
}

/** Brackets stay as people write them. A parameter without a value is not written. */
export function writePairs(pairs: readonly (readonly [name: string, value: string | undefined])[]): string {
  const written = pairs.flatMap(([name, value]) =>
    value === undefined ? [] : `${name.replace(UNSAFE, encodeURIComponent)}=${encodeURIComponent(value)}`,
  );
  return written.length === 0 ? "" : `?${written.join("&")}`;
}
