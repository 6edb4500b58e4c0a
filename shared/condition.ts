/**
 * Plans filters: turns them into conditions that entries must meet, or says why they are refused. Source: contract.md
 * sections 3 and 4.
 */
import { type Column, type ContentType, findColumn, isFilterable } from "./catalog.ts";
import { equalOperand, expectedOperand, orderOperand } from "./operand.ts";
import { badFilter, badFilterValue, badOperator, MAX_FILTERS, type Refusal, tooManyFilters } from "./refusal.ts";
import type { Filter } from "./request.ts";

const ORDERS = ["gt", "gte", "lt", "lte"] as const;
const MATCHES = ["contains", "starts_with"] as const;
export const OPERATORS = ["eq", "neq", ...ORDERS, ...MATCHES, "in", "nin"] as const;
type Operator = (typeof OPERATORS)[number];

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
  readonly operator: (typeof MATCHES)[number];
  readonly text: string;
};

/** A condition that entries must meet. */
export type Condition = EqualsCondition | OrderCondition | MatchCondition;

/** Of several faults, reports the kind that the contract lists first, and within it the first fault in the URL. */
export function planConditions(type: ContentType, filters: readonly Filter[]): readonly Condition[] | Refusal {
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

function equals(column: Column, texts: readonly string[], negated: boolean): EqualsCondition {
  const values = texts.map((text) => equalOperand(column, text)).filter((value) => value !== null);
  return { kind: "equals", column, values, negated };
}

function isOperator(text: string): text is Operator {
  return (OPERATORS as readonly string[]).includes(text);
}

export function isNegated(condition: Condition): boolean {
  return condition.kind === "equals" && condition.negated;
}
