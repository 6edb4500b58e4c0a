/**
 * The model's reading of a URL: which endpoint, which parameters, which filters.
 * Source: shared/contract.md section 3.
 */

export type ModelRoute =
  | { kind: "catalog" }
  | { kind: "schema"; slug: string }
  | { kind: "list"; slug: string }
  | { kind: "search"; slug: string }
  | { kind: "entry"; slug: string; id: string };

/** In the order of the URL: a repeated name keeps its first place and gets its last value. No value is empty. */
export type ModelParameters = Map<string, string>;

export const OPERATORS = ["eq", "neq", "gt", "gte", "lt", "lte", "contains", "starts_with", "in", "nin"] as const;
export type Operator = (typeof OPERATORS)[number];

/** `field` is null where the name has no readable field, `operator` where it is not one of OPERATORS. */
export type ModelFilter = { name: string; field: string | null; operator: Operator | null; value: string };

export function readTarget(target: string): { route: ModelRoute | undefined; parameters: ModelParameters } {
  const mark = target.indexOf("?");
  const path = mark < 0 ? target : target.slice(0, mark);
  const query = mark < 0 ? "" : target.slice(mark + 1);
  return { route: readPath(path), parameters: readQuery(query) };
}

function readPath(path: string): ModelRoute | undefined {
  const segments = path.split("/");
  if (segments.shift() !== "") return undefined;
  if (segments.at(-1) === "") segments.pop();
  if (segments.includes("")) return undefined;
  const decoded = segments.map(decodeSegment);
  if (decoded.includes(undefined)) return undefined;
  const [api, version, first, second, ...more] = decoded;
  if (api !== "api" || version !== "v1" || first === undefined || more.length > 0) return undefined;
  if (first === "_schemas") return second === undefined ? { kind: "catalog" } : { kind: "schema", slug: second };
  if (second === undefined) return { kind: "list", slug: first };
  return second === "search" ? { kind: "search", slug: first } : { kind: "entry", slug: first, id: second };
}

function decodeSegment(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

function readQuery(query: string): ModelParameters {
  const parameters: ModelParameters = new Map();
  for (const pair of query.split("&")) {
    const equals = pair.indexOf("=");
    if (equals < 0) continue;
    const value = decodeForm(pair.slice(equals + 1));
    if (value !== "") parameters.set(plainName(decodeForm(pair.slice(0, equals))), value);
  }
  return parameters;
}

/** Form decoding (WHATWG): a `%` that escapes nothing stands for itself, bytes that are not UTF-8 become U+FFFD. */
function decodeForm(text: string): string {
  const bytes: number[] = [];
  const source = Buffer.from(text.replaceAll("+", " "), "utf8");
  for (let at = 0; at < source.length; at++) {
    const escaped = source.toString("latin1", at, at + 3);
    const isEscape = /^%[0-9a-f]{2}$/i.test(escaped);
    bytes.push(isEscape ? Number.parseInt(escaped.slice(1), 16) : (source[at] ?? 0));
    if (isEscape) at += 2;
  }
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(bytes));
}

/** `filter[f][eq]` is the same parameter as `filter[f]`. */
function plainName(name: string): string {
  const { field, operator } = readFilterName(name);
  return field !== null && operator === "eq" ? `filter[${field}]` : name;
}

/** All filters, and apart from them the fields that are named with `like`, which is no filter. */
export function readFilters(parameters: ModelParameters): { filters: ModelFilter[]; liked: string[] } {
  const filters: ModelFilter[] = [];
  const liked: string[] = [];
  for (const [name, value] of parameters) {
    if (name !== "filter" && !name.startsWith("filter[")) continue;
    const { field, operator } = readFilterName(name);
    if (field !== null && name === `filter[${field}][like]`) liked.push(field);
    else filters.push({ name, field, operator, value });
  }
  return { filters, liked };
}

/** `filter[a]`, `filter[a][op]`; whatever else follows `filter[a][` is an operator that does not exist. */
function readFilterName(name: string): { field: string | null; operator: Operator | null } {
  const close = name.indexOf("]");
  const field = name.startsWith("filter[") && close > 0 ? name.slice("filter[".length, close) : "";
  const rest = name.slice(close + 1);
  if (field === "" || (rest !== "" && !rest.startsWith("["))) return { field: null, operator: null };
  if (rest === "") return { field, operator: "eq" };
  return { field, operator: OPERATORS.find((operator) => rest === `[${operator}]`) ?? null };
}
