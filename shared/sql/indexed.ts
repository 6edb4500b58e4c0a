/** Builds the tests of conditions, by an index where one serves: that of a slot, a timestamp, all texts, or elements. */
import { type Condition, type EqualsCondition, isNegated, type OrderCondition } from "../condition.ts";
import { isTextual } from "./column.ts";
import { isPrefix, prefixSql } from "./prefix.ts";
import type { Slots } from "./slots.ts";
import { equalsAny, storedIn, storedOperand, storedType } from "./stored.ts";
import { matchSql } from "./trigram.ts";
import { type Bind, conditionSql, SIGNS } from "./where.ts";

/**
 * A test on an entry `e`, and the kind of index that finds the entries that pass it. `ordered`: the B-tree index of a
 * column, which also gives its order. `trigram`: the trigram index of all texts in slots, which gives no order.
 * `elements`: the GIN index of values, for elements that are counted. Null: none of these.
 */
export type Test = { readonly sql: string; readonly index: "ordered" | "trigram" | "elements" | null };

export function sqlOf(tests: readonly Test[]): string[] {
  return tests.map(({ sql }) => sql);
}

/** Whether the only test is on an element of a `multiple` field. */
export function isOfElements([one, ...others]: readonly Test[]): boolean {
  return one?.index === "elements" && others.length === 0;
}

/** Builds the test of a condition. `isGeneric` says that the statement gets one query plan for all values. */
export function testOf(condition: Condition, slots: Slots, bind: Bind, isGeneric = false): Test {
  const served = servedSql(condition, slots, bind);
  if (served !== null) return { sql: isNegated(condition) ? `(${served}) IS NOT TRUE` : served, index: "ordered" };
  const slot = slots.slotOf(condition.column);
  const isTrigram =
    slot !== null && condition.kind === "match" && isTextual(condition.column) && !condition.text.includes("\0");
  if (!isTrigram) {
    const index = elementSlot(condition, slots) === null ? null : "elements";
    return { sql: conditionSql(condition, bind), index };
  }
  return { sql: matchSql(condition, slot, bind, isGeneric), index: "trigram" };
}

/**
 * The slot that counts the entries with the element that the condition names, which serves the negated condition too.
 * Null when no count gives the total.
 */
export function elementSlot(condition: Condition, slots: Slots): string | null {
  // Counts of several elements cannot be added up, for one entry may have several of them.
  if (condition.kind !== "equals" || condition.values.length !== 1) return null;
  return condition.values.every((value) => Buffer.byteLength(value) <= MAX_COUNTED_SIZE)
    ? slots.elementsOf(condition.column)
    : null;
}

/** Size limit, in bytes, of a counted element and of each value of a counted pair (schema/0007_counts.sql). */
export const MAX_COUNTED_SIZE = 500;

function servedSql(condition: Condition, slots: Slots, bind: Bind): string | null {
  const stored = storedIn(condition.column, slots);
  if (stored === null) return null;
  switch (condition.kind) {
    case "equals":
      return equalSql(condition, stored, bind);
    case "order":
      return orderSql(condition, stored, bind);
    case "match":
      return isPrefix(condition) ? prefixSql(condition, stored, bind) : null;
  }
}

function equalSql({ column, values }: EqualsCondition, stored: string, bind: Bind): string {
  return equalsAny(
    stored,
    values.map((value) => storedOperand(column, value)),
    storedType(column),
    bind,
  );
}

/** Times in this spelling sort chronologically as texts, under any collation. */
const TIME = /^\d{4}-\d{2}-\d{2}/;

function orderSql(condition: OrderCondition, stored: string, bind: Bind): string | null {
  const { column, operator, value } = condition;
  if (column.type === "date" || column.type === "datetime") {
    if (!TIME.test(value)) return null;
  } else if (column.type !== "number" && column.type !== "timestamp") return null;
  return `${stored} ${SIGNS[operator]} ${bind(storedOperand(column, value))}::${storedType(column)}`;
}
