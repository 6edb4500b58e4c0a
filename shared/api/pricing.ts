/** Decides the shape of a request, and whether it is counted, by URL and type alone. Source: contract.md section 5. */
import {
  type Column,
  type ContentType,
  defaultPerPage,
  findColumn,
  isFilterable,
  isTimestamp,
  TIMESTAMPS,
} from "./catalog.ts";
import { defaultSort, readField, readSort } from "./columns.ts";
import { MAX_NAMES_LENGTH } from "./errors.ts";
import { equalOperand, orderOperand } from "./filter.ts";
import type { ApiRequest, Filter, RequestParameters } from "./request.ts";
import { countCharacters, readNames, readWhole } from "./value.ts";

export type FreeShape = "catalog" | "schema" | "entry" | "page" | "filter" | "sort";
const COUNTED_SHAPES = ["list", "populate", "search"] as const;
type CountedShape = (typeof COUNTED_SHAPES)[number];
export type Shape = FreeShape | CountedShape;

export type Price = {
  readonly shape: Shape;
  readonly counted: boolean;
  /** The rule that applies, as a sentence for `precast explain`. */
  readonly rule: string;
};

/** Decides by shape alone. A request that the ledger cannot record is refused and uncounted, whatever its shape. */
export function isCountedShape(shape: Shape): shape is CountedShape {
  return (COUNTED_SHAPES as readonly Shape[]).includes(shape);
}

/** `type` is undefined when the app has no such published type, which then has no filterable and no sortable field. */
export function priceRequest(request: ApiRequest, type: ContentType | undefined): Price {
  const { shape, rule } = classify(request, type);
  return { shape, counted: isCountedShape(shape), rule };
}

function classify({ route, parameters }: ApiRequest, type: ContentType | undefined): { shape: Shape; rule: string } {
  switch (route.kind) {
    case "catalog":
    case "schema":
      return { shape: route.kind, rule: "The catalog and the schemas are free." };
    case "entry":
      return parameters.populate === undefined
        ? { shape: "entry", rule: "An entry without populate is free." }
        : { shape: "populate", rule: "An entry with populate is counted." };
    case "search":
      return { shape: "search", rule: "Search is always counted." };
    case "list":
      return classifyList(parameters, type);
  }
}

function classifyList(parameters: RequestParameters, type: ContentType | undefined): { shape: Shape; rule: string } {
  const { filters, sort, page } = parameters;
  const counted = (rule: string) => ({ shape: "list" as const, rule });
  if (parameters.per_page !== undefined) return counted("A list with per_page is counted.");
  if (parameters.fields !== undefined) return counted("A list with fields is counted.");
  if (filters.length + (sort === undefined ? 0 : 1) > 1)
    return counted("A list with more than one filter or sort is counted.");
  const filter = filters[0];
  if (filter === undefined && sort === undefined)
    return { shape: "page", rule: "A list without parameters, or with page alone, is free." };
  if (page !== undefined) return counted("A list with page and a filter or a sort is counted.");
  if (filter !== undefined) {
    return isFreeFilter(filter, type)
      ? { shape: "filter", rule: "One equality filter on a filterable field, alone, is free." }
      : counted("A filter other than equality on a filterable field is counted.");
  }
  return isFreeSort(sort as string, type)
    ? { shape: "sort", rule: "One sort on a sortable field or a timestamp, alone, is free." }
    : counted("A sort on a field that is not sortable is counted.");
}

function isFreeSort(sort: string, type: ContentType | undefined): boolean {
  return type === undefined ? isTimestamp(sort.replace(/^-/, "")) : readSort(type, sort) !== null;
}

function isFreeFilter({ field, operator }: Filter, type: ContentType | undefined): boolean {
  return field !== null && operator === "eq" && type !== undefined && isFilterable(type, field);
}

// Names what a request uses, for the ledger: no text that a client could choose.

/** `type` is empty for one that the app does not have. `fields` are those by which it filters, sorts and populates. */
export type UsedNames = { readonly type: string; readonly fields: string };

export function nameUsed({ parameters }: ApiRequest, type: ContentType | undefined): UsedNames {
  if (type === undefined) return { type: "", fields: "" };
  const { filters, sort, populate } = parameters;
  const named = [...filters.map(({ field }) => field ?? ""), readField(sort ?? ""), ...readNames(populate ?? "")];
  const known = named.filter((name) => findColumn(type, name) !== undefined);
  return { type: type.slug, fields: [...new Set(known)].sort().join() };
}

// Finds counted requests that could have been free, because a free request has the same answer. Source: contract.md
// sections 3 to 5.

export type FreeEquivalent = {
  /** What makes the request counted, in query syntax: `per_page=20&page=1`. Contains no free text of clients. */
  readonly text: string;
  /** The free request that has the same answer. */
  readonly request: ApiRequest;
};

/** One change of the parameters that does not change the answer. `apply` does it. */
type Step = {
  readonly text: string;
  readonly apply: (parameters: RequestParameters) => RequestParameters;
};

/** Null for a free request, and for a counted one that no free request can replace. */
export function findFreeEquivalent(request: ApiRequest, type: ContentType | undefined): FreeEquivalent | null {
  if (type === undefined || !priceRequest(request, type).counted) return null;
  const steps = findSteps(request, type);
  if (!isFree(request, steps, type)) return null;
  const needed = steps.reduce((some, step) => {
    const others = some.filter((one) => one !== step);
    return isFree(request, others, type) ? others : some;
  }, steps);
  return {
    text: needed.map(({ text }) => text).join("&"),
    request: applySteps(request, needed),
  };
}

function applySteps(request: ApiRequest, steps: readonly Step[]): ApiRequest {
  return { ...request, parameters: steps.reduce((parameters, { apply }) => apply(parameters), request.parameters) };
}

function isFree(request: ApiRequest, steps: readonly Step[], type: ContentType): boolean {
  return !priceRequest(applySteps(request, steps), type).counted;
}

function findSteps({ route, parameters }: ApiRequest, type: ContentType): readonly Step[] {
  if (route.kind === "entry") return namesNoRelation(parameters, type) ? [without("populate")] : [];
  if (route.kind !== "list") return [];
  // The API hides these two settings: a type that was read from it lacks both.
  const knowsDefaults = type.per_page !== undefined;
  return [
    ...(knowsDefaults && asksDefaultSize(parameters, type)
      ? [without("per_page", `per_page=${defaultPerPage(type)}`)]
      : []),
    ...(parameters.fields !== undefined && showsAll(parameters.fields, type) ? [without("fields")] : []),
    ...(knowsDefaults && isDefaultSort(parameters, type) ? [without("sort", `sort=${parameters.sort}`)] : []),
    ...filterSteps(parameters.filters, type),
    ...(readWhole(parameters.page ?? "") === 1n ? [without("page", "page=1")] : []),
  ];
}

function without(name: keyof RequestParameters, text: string = name): Step {
  return { text, apply: ({ [name]: _, ...rest }) => ({ filters: [], ...rest }) };
}

function asksDefaultSize({ per_page }: RequestParameters, type: ContentType): boolean {
  return readWhole(per_page ?? "") === BigInt(defaultPerPage(type));
}

function isDefaultSort({ sort: text }: RequestParameters, type: ContentType): boolean {
  const sort = text === undefined ? null : readSort(type, text);
  const byDefault = defaultSort(type);
  return sort !== null && sort.column.name === byDefault.column.name && sort.descending === byDefault.descending;
}

function showsAll(fields: string, type: ContentType): boolean {
  if (countCharacters(fields) > MAX_NAMES_LENGTH) return false;
  const names = readNames(fields);
  const shown = type.fields.every((field) => names.includes(field.name) === (field.type !== "rich_text"));
  return shown && TIMESTAMPS.every((name) => names.includes(name));
}

function namesNoRelation({ populate = "" }: RequestParameters, type: ContentType): boolean {
  if (countCharacters(populate) > MAX_NAMES_LENGTH) return false;
  const names = readNames(populate);
  return !type.fields.some((field) => field.type === "relation" && names.includes(field.name));
}

/** Only a single equality can be free, so only one filter, or two on the same field, can be replaced by it. */
function filterSteps(filters: readonly Filter[], type: ContentType): Step[] {
  const [first, second, ...more] = filters;
  const column = first?.field == null ? undefined : findColumn(type, first.field);
  if (first === undefined || column === undefined || more.length > 0) return [];
  const replaceWith = (text: string, value: string): Step[] => [
    { text, apply: (parameters) => ({ ...parameters, filters: [equality(column, value)] }) },
  ];
  if (second === undefined) {
    const value = first.operator === "in" ? oneValue(column, first.value) : null;
    return value === null ? [] : replaceWith("filter[][in]", value);
  }
  if (second.field !== first.field) return [];
  if (isClosedRange(column, first, second)) return replaceWith("filter[][gte..lte]", first.value);
  const [one, other] = [first, second].map((filter) => equalTo(column, filter));
  return one != null && other != null && equalOperand(column, one) === equalOperand(column, other)
    ? replaceWith("filter[][in]", one)
    : [];
}

function equality({ name }: Column, value: string): Filter {
  return { parameter: `filter[${name}]`, field: name, operator: "eq", value };
}

/** The one value that a filter accepts; null when it accepts several or is not `eq` or `in`. */
function equalTo(column: Column, { operator, value }: Filter): string | null {
  if (operator === "eq") return value;
  return operator === "in" ? oneValue(column, value) : null;
}

/** The one value in a list; null when there are several. If no part can match, returns any: it finds nothing either. */
function oneValue(column: Column, list: string): string | null {
  const parts = list.split(",").filter((part) => part !== "");
  const known = parts.filter((part) => equalOperand(column, part) !== null);
  const operands = new Set(known.map((part) => equalOperand(column, part)));
  return operands.size > 1 ? null : (known[0] ?? parts[0] ?? null);
}

/** Whether the range is `gte` and `lte` one value. Not for text: ranges compare it as a number, equality as text. */
function isClosedRange(column: Column, one: Filter, other: Filter): boolean {
  if (!["number", "date", "datetime", "timestamp"].includes(column.type)) return false;
  if ([one.operator, other.operator].sort().join() !== "gte,lte") return false;
  const operand = orderOperand(column, one.value);
  return operand !== null && operand === orderOperand(column, other.value);
}
