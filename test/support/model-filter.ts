/**
 * The model's filters and sorts: which are refused, which entries match, and in which order they come.
 * Source: shared/contract.md sections 3 and 4.
 */

import type { BundleEntry, BundleType, ModelColumn } from "./model-bundle.ts";
import { entryId, fieldValue, fieldValues, findColumn, isTimestampName } from "./model-bundle.ts";
import type { ModelFilter, Operator } from "./model-request.ts";
import { compareValues, equalityKey, orderKey, textForm } from "./model-value.ts";

export type Fault = { code: string; parameter: string };

const COMPARISONS: readonly Operator[] = ["gt", "gte", "lt", "lte"];

/** The first fault in the contract's order; `undefined` without a fault. */
export function filterFault(type: BundleType, filters: readonly ModelFilter[]): Fault | undefined {
  const fields = new Set(filters.map(({ field }) => field).filter((field) => field !== null));
  if (fields.size > 10) return { code: "TOO_MANY_FILTERS", parameter: "filter" };
  const unknown = filters.find((filter) => !isFilterable(type, filter.field));
  if (unknown) return { code: "INVALID_FILTER", parameter: unknown.name };
  const unclear = filters.find((filter) => filter.operator === null);
  if (unclear) return { code: "INVALID_OPERATOR", parameter: unclear.name };
  const unreadable = filters.find((filter) => !hasOrder(type, filter));
  if (unreadable) return { code: "INVALID_FILTER_VALUE", parameter: unreadable.name };
  return undefined;
}

export function isFilterable(type: BundleType | undefined, field: string | null): boolean {
  return type?.filterable_fields.some((name) => name === field) ?? false;
}

/** Whether a value of an equality cannot be read as the type of its filterable field: then no entry has it. */
export function isUnreadable(type: BundleType | undefined, { field, operator, value }: ModelFilter): boolean {
  if (type === undefined || !isFilterable(type, field) || operator === null) return false;
  const isList = operator === "in" || operator === "nin";
  if (!isList && operator !== "eq" && operator !== "neq") return false;
  const column = columnOf(type, field);
  const parts = isList ? value.split(",").filter((part) => part !== "") : [value];
  return parts.some((part) => equalityKey(column, part) === undefined);
}

function hasOrder(type: BundleType, filter: ModelFilter): boolean {
  if (filter.operator === null || !COMPARISONS.includes(filter.operator)) return true;
  return orderKey(columnOf(type, filter.field), filter.value) !== undefined;
}

function columnOf(type: BundleType, name: string | null): ModelColumn {
  const column = findColumn(type, name ?? "");
  if (!column) throw new Error(`the bundle lists "${name}", which ${type.slug} does not have`);
  return column;
}

/** The entries that meet every filter. */
export function keepMatching(
  type: BundleType,
  filters: readonly ModelFilter[],
  entries: readonly BundleEntry[],
): BundleEntry[] {
  return entries.filter((entry) => filters.every((filter) => meets(columnOf(type, filter.field), filter, entry)));
}

function meets(column: ModelColumn, { operator, value: asked }: ModelFilter, entry: BundleEntry): boolean {
  const values = fieldValues(entry, column);
  switch (operator) {
    case "neq":
      return !values.some((value) => equals(column, value, asked));
    case "nin":
      return !values.some((value) => isOneOf(column, value, asked));
    default:
      return values.some((value) => valueMeets(column, operator, value, asked));
  }
}

function valueMeets(column: ModelColumn, operator: Operator | null, value: unknown, asked: string): boolean {
  switch (operator) {
    case "eq":
      return equals(column, value, asked);
    case "in":
      return isOneOf(column, value, asked);
    case "contains":
      return textForm(value).toLowerCase().includes(asked.toLowerCase());
    case "starts_with":
      return textForm(value).toLowerCase().startsWith(asked.toLowerCase());
    default:
      return compares(column, operator, value, asked);
  }
}

function equals(column: ModelColumn, value: unknown, asked: string): boolean {
  const key = equalityKey(column, asked);
  return key !== undefined && key === equalityKey(column, textForm(value));
}

/** Split at commas, nothing trimmed, empty parts dropped. */
function isOneOf(column: ModelColumn, value: unknown, list: string): boolean {
  const parts = list.split(",").filter((part) => part !== "");
  return parts.some((part) => equals(column, value, part));
}

function compares(column: ModelColumn, operator: Operator | null, value: unknown, asked: string): boolean {
  const left = orderKey(column, textForm(value));
  const right = orderKey(column, asked);
  if (left === undefined || right === undefined) return false;
  switch (operator) {
    case "gt":
      return left > right;
    case "gte":
      return left >= right;
    case "lt":
      return left < right;
    default:
      return left <= right;
  }
}

export type ModelSort = { column: ModelColumn; descending: boolean };

/** `undefined` where the type cannot be sorted that way. */
export function readSort(type: BundleType | undefined, sort: string): ModelSort | undefined {
  const name = sort.startsWith("-") ? sort.slice(1) : sort;
  // Timestamps sort newest first with and without the prefix: no sort gives the oldest first.
  if (isTimestampName(name)) return { column: { name, type: "timestamp", multiple: false }, descending: true };
  if (!type?.sortable_fields.includes(name)) return undefined;
  return { column: columnOf(type, name), descending: sort !== name };
}

export function defaultSort(type: BundleType): ModelSort {
  const sort = type.default_sort ?? "-published_at";
  const read = readSort(type, sort);
  if (!read) throw new Error(`the bundle sorts ${type.slug} by "${sort}", which is not sortable`);
  return read;
}

export function sortEntries(entries: readonly BundleEntry[], sort: ModelSort): BundleEntry[] {
  return [...entries].sort((a, b) => compareBy(sort, a, b) || compareNewest(a, b));
}

/** Entries without a value come last, whichever the direction. */
function compareBy({ column, descending }: ModelSort, a: BundleEntry, b: BundleEntry): number {
  const [left, right] = [fieldValue(a, column), fieldValue(b, column)];
  if (left === null || right === null) return Number(left === null) - Number(right === null);
  const ascending = compareValues(column, left, right);
  return descending ? -ascending : ascending;
}

/** Newest `published_at` first, then `id`: how every tie is broken. */
export function compareNewest(a: BundleEntry, b: BundleEntry): number {
  const published: ModelColumn = { name: "published_at", type: "timestamp", multiple: false };
  const newest = compareValues(published, fieldValue(b, published), fieldValue(a, published));
  return newest || (entryId(a) < entryId(b) ? -1 : 1);
}
