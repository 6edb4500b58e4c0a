/**
 * Plans filters: turns them into conditions that entries must meet, or says why they are refused. Source: contract.md
 * sections 3 and 4.
 */
import { type Column, type ContentType, findColumn, isFilterable } from "./catalog.ts";
import { badFilter, badFilterValue, badOperator, MAX_FILTERS, type Refusal, tooManyFilters } from "./errors.ts";
import type { Filter } from "./request.ts";
import { formatDay, formatTimestamp, readBoolean, readDay, readNumber, readTimestamp, readUuid } from "./value.ts";

const ORDERS = ["gt", "gte", "lt", "lte"] as const;
const OPERATORS = ["eq", "neq", "gt", "gte", "lt", "lte", "contains", "starts_with", "in", "nin"] as const;
export type Operator = (typeof OPERATORS)[number];

/** `eq` and `in`: the column has one of the values. If `negated`, `neq` and `nin`: it has none of them. */
export type EqualsCondition = {
  readonly kind: "equals";
  readonly column: Column;
  /** In canonical spelling. */
  readonly values: readonly string[];
  readonly negated: boolean;
};

export type OrderCondition = {
  readonly kind: "order";
  readonly column: Column;
  readonly operator: (typeof ORDERS)[number];
  /** In canonical spelling. */
  readonly value: string;
};

export type MatchCondition = {
  readonly kind: "match";
  readonly column: Column;
  readonly operator: "contains" | "starts_with";
  readonly text: string;
};

/** A condition that entries must meet. */
export type Condition = EqualsCondition | OrderCondition | MatchCondition;

/** Of several faults, reports the kind that the contract lists first, and within it the first fault in the URL. */
export function planConditions(type: ContentType, filters: readonly Filter[]): readonly Condition[] | Refusal {
  // A malformed name names no field: it is refused, and does not count.
  const fields = new Set(filters.flatMap(({ field }) => field ?? []));
  if (fields.size > MAX_FILTERS) return tooManyFilters(fields.size);
  for (const { field, parameter } of filters) {
    if (field === null || !isFilterable(type, field)) return badFilter(type, field, parameter);
  }
  for (const { operator, parameter } of filters) {
    if (!isOperator(operator)) return badOperator(OPERATORS, operator, parameter);
  }
  const conditions: Condition[] = [];
  for (const filter of filters) {
    const column = findColumn(type, filter.field as string);
    const condition = column && planCondition(column, filter.operator as Operator, filter.value);
    if (condition === undefined) return badFilter(type, filter.field, filter.parameter);
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
    case "in":
    case "nin":
      return equals(column, listedValues(operator, value), operator === "neq" || operator === "nin");
    case "contains":
    case "starts_with":
      return { kind: "match", column, operator, text: value };
    default: {
      const operand = orderOperand(column, value);
      return operand === null ? null : { kind: "order", column, operator, value: operand };
    }
  }
}

/** The texts that an equality compares with: none for another operator. */
export function listedValues(operator: string, value: string): readonly string[] {
  if (operator === "eq" || operator === "neq") return [value];
  return operator === "in" || operator === "nin" ? value.split(",").filter((part) => part !== "") : [];
}

function equals(column: Column, texts: readonly string[], negated: boolean): EqualsCondition {
  const values = texts.map((text) => equalOperand(column, text)).filter((value) => value !== null);
  return { kind: "equals", column, values, negated };
}

function isOperator(text: string): text is Operator {
  return (OPERATORS as readonly string[]).includes(text);
}

/** The operators that filters on the column may have. */
export function listOperators({ type }: Column): readonly Operator[] {
  const hasOrder = type !== "boolean" && type !== "relation";
  return OPERATORS.filter((operator) => hasOrder || !(ORDERS as readonly string[]).includes(operator));
}

export function isNegated(condition: Condition): boolean {
  return condition.kind === "equals" && condition.negated;
}

// Converts a value from a URL to its canonical spelling for a column. Filters compare this spelling, and the tree
// names files by it. Source: shared/contract.md section 4.

/** Matches the times that an entry can have: years 0001 to 9999. */
const STORABLE_TIME = /^(?!0000)\d/;

/** The canonical spelling for equality; null when no entry can equal the value. */
export function equalOperand(column: Column, text: string): string | null {
  const value = spellValue(column, text);
  switch (column.type) {
    case "date":
    case "datetime":
    case "timestamp":
      // No stored time equals one out of range (`-`, `~`), but a text stored before the field became a date might.
      return value !== null && STORABLE_TIME.test(value) ? value : null;
    default:
      // PostgreSQL cannot store U+0000, so no stored text equals one that contains it.
      return value?.includes("\0") ? null : value;
  }
}

/** Whether a text can be read as a value of the column's type. */
export function isReadable(column: Column, text: string): boolean {
  return spellValue(column, text) !== null;
}

/** The canonical spelling of a value of the column's type; null when the text cannot be read as one. */
function spellValue(column: Column, text: string): string | null {
  switch (column.type) {
    case "number":
      return spell(readNumber(text), String);
    case "boolean":
      return spell(readBoolean(text), String);
    case "relation":
      return readUuid(text);
    case "date":
    case "datetime":
    case "timestamp":
      return timeOperand(column, text);
    default:
      return text;
  }
}

/** The canonical spelling for `gt`, `gte`, `lt` and `lte`; null when the value cannot be compared with this column. */
export function orderOperand(column: Column, text: string): string | null {
  switch (column.type) {
    case "boolean":
    case "relation":
      return null;
    case "number":
    case "text":
    case "select":
    case "media":
      return spell(readNumber(text), String);
    default:
      return timeOperand(column, text);
  }
}

/** A sentence for clients that says which values `gt`, `gte`, `lt` and `lte` accept for this column. */
function expectedOperand(column: Column): string {
  switch (column.type) {
    case "boolean":
    case "relation":
      return `'${column.name}' is a ${column.type} and has no order. Use eq, neq, in or nin.`;
    case "date":
      return `'${column.name}' must be compared with a date such as 2026-01-20.`;
    case "datetime":
    case "timestamp":
      return `'${column.name}' must be compared with an instant such as 2026-01-20T15:30:00Z.`;
    default:
      return `'${column.name}' must be compared with a number such as 2020 or -1.5.`;
  }
}

function timeOperand(column: Column, text: string): string | null {
  return column.type === "date" ? spell(readDay(text), formatDay) : spell(readTimestamp(text), formatTimestamp);
}

function spell<T>(value: T | null, format: (value: T) => string): string | null {
  return value === null ? null : format(value);
}
