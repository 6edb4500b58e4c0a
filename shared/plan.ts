/**
 * Plans a request: what it means for a content type, or why it is refused. Meaning alone; neither database nor tree is
 * known here. The checks come in the order of contract.md section 3.
 */
import {
  type Column,
  type ContentType,
  DEFAULT_PER_PAGE,
  defaultPerPage,
  type Field,
  findColumn,
  isFilterable,
  MAX_PER_PAGE,
} from "./catalog.ts";
import { equalOperand, expectedOperand, orderOperand } from "./operand.ts";
import {
  badFields,
  badFilter,
  badFilterValue,
  badOperator,
  badPage,
  badPerPage,
  badPopulate,
  badQuery,
  badSort,
  entryNotFound,
  isRefusal,
  MAX_FILTERS,
  MAX_NAMES,
  MAX_QUERY,
  MIN_QUERY,
  type Refusal,
  tooManyFilters,
  typeNotFound,
} from "./refusal.ts";
import type { ApiRequest, Asked, Filter } from "./request.ts";
import { type Shown, shownOfEntry, shownOfList, shownOfNames, shownOfSearch } from "./shown.ts";
import { defaultSort, readSort, type Sort } from "./sort.ts";
import { lengthOf, readUuid, readWhole } from "./value.ts";

const ORDERS = ["gt", "gte", "lt", "lte"] as const;
const MATCHES = ["contains", "starts_with"] as const;
export const OPERATORS = ["eq", "neq", ...ORDERS, ...MATCHES, "in", "nin"] as const;
type Operator = (typeof OPERATORS)[number];

/** What an entry must meet, with values in canonical spelling. */
export type Condition =
  | { readonly kind: "equals"; readonly column: Column; readonly values: readonly string[]; readonly negated: boolean }
  | {
      readonly kind: "order";
      readonly column: Column;
      readonly operator: (typeof ORDERS)[number];
      readonly value: string;
    }
  | {
      readonly kind: "match";
      readonly column: Column;
      readonly operator: (typeof MATCHES)[number];
      readonly text: string;
    };

type Pages = { readonly page: bigint; readonly perPage: number };

export type ListPlan = Pages & {
  readonly kind: "list";
  readonly type: ContentType;
  readonly conditions: readonly Condition[];
  readonly sort: Sort;
  readonly shown: Shown;
};

export type SearchPlan = Pages & {
  readonly kind: "search";
  readonly type: ContentType;
  readonly conditions: readonly Condition[];
  /** Null for relevance. */
  readonly sort: Sort | null;
  readonly shown: Shown;
  readonly query: string;
  readonly words: readonly string[];
};

export type EntryPlan = {
  readonly kind: "entry";
  readonly type: ContentType;
  readonly id: string;
  readonly shown: Shown;
  readonly populate: readonly Field[];
  /** Refuses the parameters, once the entry is found: an entry that is not there is told first. */
  readonly refusal: Refusal | null;
};

export type Plan =
  | { readonly kind: "catalog" }
  | { readonly kind: "schema"; readonly type: ContentType }
  | ListPlan
  | SearchPlan
  | EntryPlan;

/** `type` is undefined when the app has no such published type. */
export function planRequest({ route, asked }: ApiRequest, type: ContentType | undefined): Plan | Refusal {
  if (route.kind === "catalog") return { kind: "catalog" };
  if (type === undefined) return typeNotFound();
  switch (route.kind) {
    case "schema":
      return { kind: "schema", type };
    case "entry":
      return planEntry(type, route.id, asked);
    case "list":
      return planList(type, asked);
    case "search":
      return planSearch(type, asked);
  }
}

function planEntry(type: ContentType, text: string, { populate }: Asked): EntryPlan | Refusal {
  const id = readUuid(text);
  if (id === null) return entryNotFound();
  const entry = { kind: "entry", type, id, shown: shownOfEntry(type) } as const;
  if (populate !== undefined && lengthOf(populate) > MAX_NAMES)
    return { ...entry, populate: [], refusal: badPopulate() };
  const names = readNames(populate ?? "");
  const relations = type.fields.filter((field) => field.type === "relation" && names.includes(field.name));
  return { ...entry, populate: relations, refusal: null };
}

function planList(type: ContentType, asked: Asked): ListPlan | Refusal {
  const conditions = planFilters(type, asked.filters);
  if (!isConditions(conditions)) return conditions;
  const sort = asked.sort === undefined ? defaultSort(type) : readSort(type, asked.sort);
  if (sort === null) return badSort(type);
  const pages = planPages(asked, defaultPerPage(type));
  if (isRefusal(pages)) return pages;
  const shown = planShown(type, asked.fields, shownOfList);
  return "kind" in shown ? shown : { ...pages, kind: "list", type, conditions, sort, shown };
}

function planSearch(type: ContentType, asked: Asked): SearchPlan | Refusal {
  const conditions = planFilters(type, asked.filters);
  if (!isConditions(conditions)) return conditions;
  const sort = asked.sort === undefined ? null : readSort(type, asked.sort);
  if (asked.sort !== undefined && sort === null) return badSort(type);
  const pages = planPages(asked, DEFAULT_PER_PAGE);
  if (isRefusal(pages)) return pages;
  const shown = planShown(type, asked.fields, shownOfSearch);
  if ("kind" in shown) return shown;
  const query = (asked.q ?? "").trim();
  const length = lengthOf(query);
  if (length < MIN_QUERY || length > MAX_QUERY) return badQuery();
  return { ...pages, kind: "search", type, conditions, sort, shown, query, words: readWords(query) };
}

/** The words of a search term: runs of letters, marks and digits (section 4). */
function readWords(query: string): string[] {
  return [...new Set(query.match(/[\p{L}\p{M}\p{N}]+/gu))];
}

function planPages(asked: Asked, defaultSize: number): (Pages & { kind: "pages" }) | Refusal {
  const page = readWhole(asked.page ?? "1");
  if (page === null || page < 1n) return badPage();
  const perPage = asked.per_page === undefined ? BigInt(defaultSize) : readWhole(asked.per_page);
  if (perPage === null || perPage < 1n || perPage > MAX_PER_PAGE) return badPerPage();
  return { kind: "pages", page, perPage: Number(perPage) };
}

function planShown(
  type: ContentType,
  fields: string | undefined,
  usual: (type: ContentType) => Shown,
): Shown | Refusal {
  if (fields === undefined) return usual(type);
  return lengthOf(fields) > MAX_NAMES ? badFields() : shownOfNames(type, readNames(fields));
}

function readNames(text: string): string[] {
  return text.split(",").map((name) => name.trim());
}

/** Of several faults, the kind that comes first in the contract is told, and of that kind the first in the URL. */
function planFilters(type: ContentType, filters: readonly Filter[]): readonly Condition[] | Refusal {
  const fields = new Set(filters.map((filter) => filter.field ?? filter.parameter));
  if (fields.size > MAX_FILTERS) return tooManyFilters(fields.size);
  for (const { field, parameter } of filters) {
    if (field === null || !isFilterable(type, field)) return badFilter(type, parameter);
  }
  for (const { operator, parameter } of filters) {
    if (!isOperator(operator)) return badOperator(OPERATORS, parameter);
  }
  const conditions: Condition[] = [];
  for (const filter of filters) {
    const column = findColumn(type, filter.field as string);
    const condition = column && planCondition(column, filter.operator as Operator, filter.value);
    if (condition === undefined) return badFilter(type, filter.parameter);
    if (condition === null) return badFilterValue(expectedOperand(column as Column), filter.parameter);
    conditions.push(condition);
  }
  return conditions;
}

/** Null when the value cannot be compared with the column. */
function planCondition(column: Column, operator: Operator, value: string): Condition | null {
  switch (operator) {
    case "eq":
    case "neq":
      return equals(column, [value], operator === "neq");
    case "in":
    case "nin":
      return equals(
        column,
        value.split(",").filter((part) => part !== ""),
        operator === "nin",
      );
    case "contains":
    case "starts_with":
      return { kind: "match", column, operator, text: value };
    default: {
      const operand = orderOperand(column, value);
      return operand === null ? null : { kind: "order", column, operator, value: operand };
    }
  }
}

function equals(column: Column, texts: readonly string[], negated: boolean): Condition {
  const values = texts.map((text) => equalOperand(column, text)).filter((value) => value !== null);
  return { kind: "equals", column, values, negated };
}

function isOperator(text: string): text is Operator {
  return (OPERATORS as readonly string[]).includes(text);
}

function isConditions(result: readonly Condition[] | Refusal): result is readonly Condition[] {
  return Array.isArray(result);
}
