/**
 * Turns filter conditions into SQL on `data`: the tests that an entry `e` must pass, for the conditions that no slot
 * serves. Those of a timestamp column are among them only for `contains` and `starts_with`.
 */
import type { Condition, EqualsCondition, MatchCondition, OrderCondition } from "../condition.ts";
import type { Value } from "../query.ts";
import { elementsSql, holdsElementsSql, isContainable, isTextual, sqlType, textSql, valueSql } from "./column.ts";

/** Adds a value to the statement and returns its placeholder, such as `$3`. */
export type Bind = (value: Value) => string;

/** SQL of the test for a condition. A negated test is true or false, never NULL. */
export function conditionSql(condition: Condition, bind: Bind): string {
  const { column } = condition;
  const contained = condition.kind === "equals" ? containmentSql(condition, bind) : null;
  const test = contained ?? (column.multiple ? anyElementSql(condition, bind) : singleSql(condition, bind));
  return condition.kind === "equals" && condition.negated ? `(${test}) IS NOT TRUE` : test;
}

/**
 * Up to this many values of one condition get a placeholder each. More are sent as one array, so that the text of the
 * statement is the same for any number of them.
 */
export const MAX_PLACEHOLDERS = 8;

/**
 * Equality to one of up to MAX_PLACEHOLDERS values as containment, which an index can find. Null when there are more
 * values or none, or when containment does not express equality (isContainable).
 */
function containmentSql({ column, values: wanted }: EqualsCondition, bind: Bind): string | null {
  if (wanted.length === 0 || wanted.length > MAX_PLACEHOLDERS || !isContainable(column)) return null;
  const contained = wanted.map((text) => {
    const value = `${bind(text)}::${sqlType(column)}`;
    return `e.data @> jsonb_build_object('${column.name}', ${column.multiple ? `jsonb_build_array(${value})` : value})`;
  });
  const any = contained.length === 1 ? contained.join() : `(${contained.join(" OR ")})`;
  return column.multiple ? `${any} AND ${holdsElementsSql(column)}` : any;
}

function anyElementSql(condition: Condition, bind: Bind): string {
  return `EXISTS (SELECT FROM ${elementsSql(condition.column)} AS value WHERE ${testSql(condition, "value", "value", bind)})`;
}

function singleSql(condition: Condition, bind: Bind): string {
  return testSql(condition, `(${valueSql(condition.column)})`, `(${textSql(condition.column)})`, bind);
}

/** The condition on one value. `value` is SQL of the value to compare, `text` SQL of the text that an answer shows. */
function testSql(condition: Condition, value: string, text: string, bind: Bind): string {
  switch (condition.kind) {
    case "equals":
      return equalsTest(condition, value, bind);
    case "order":
      return orderTest(condition, value, bind);
    case "match":
      return matchTest(condition, text, bind);
  }
}

function equalsTest({ column, values: wanted }: EqualsCondition, value: string, bind: Bind): string {
  return `${value} = ANY (${bind(wanted)}::${sqlType(column)}[])`;
}

/** The test of a `contains` or `starts_with` condition. `text` is SQL of the text to search. */
export function matchTest({ text: wanted, operator }: MatchCondition, text: string, bind: Bind): string {
  // PostgreSQL cannot store U+0000, so no text contains it.
  if (wanted.includes("\0")) return "false";
  const operand = `lower(${bind(wanted)}::text COLLATE "und-x-icu")`;
  const stored = `lower(${text} COLLATE "und-x-icu")`;
  return operator === "contains" ? `strpos(${stored}, ${operand}) > 0` : `starts_with(${stored}, ${operand})`;
}

export const SIGNS = { gt: ">", gte: ">=", lt: "<", lte: "<=" } as const;

function orderTest(condition: OrderCondition, value: string, bind: Bind): string {
  const { column, operator } = condition;
  const sign = SIGNS[operator];
  if (isTextual(column)) return `precast.double(${value}) ${sign} ${bind(condition.value)}::float8`;
  const collation = sqlType(column) === "text" ? ' COLLATE "C"' : "";
  return `${value}${collation} ${sign} ${bind(condition.value)}::${sqlType(column)}`;
}
