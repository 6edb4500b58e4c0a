/** Tests and orders that indexes serve: those of fields that stand in slots, and of the publication. */
import type { Column } from "./catalog.ts";
import { isTextual, sqlType } from "./column.ts";
import type { Condition } from "./condition.ts";
import type { Value } from "./database/database.ts";
import type { Slots } from "./slots.ts";
import { conditionSql, matchTest, type Place, SIGNS, timestampOperand } from "./where.ts";

/** A test on an entry `e`, and whether an index finds what passes it in its order. */
export type Test = { readonly sql: string; readonly isServed: boolean };

export function testOf(condition: Condition, slots: Slots, place: Place): Test {
  const served = servedSql(condition, slots, place);
  return served === null
    ? { sql: narrowedSql(condition, slots, place), isServed: false }
    : { sql: isNegated(condition) ? `(${served}) IS NOT TRUE` : served, isServed: true };
}

/** The texts of slots stand together in one column for an index to find a part in: each a line that its slot's number begins. */
function narrowedSql(condition: Condition, slots: Slots, place: Place): string {
  const slot = slots.slotOf(condition.column);
  if (condition.kind !== "match" || slot === null || condition.text.includes("\0") || !isTextual(condition.column))
    return conditionSql(condition, place);
  const part = place(condition.text.replace(/[\\%_]/g, "\\$&"));
  const before = condition.operator === "contains" ? "" : `\\n${slot.slice(1)}`;
  const narrowed = `e.texts LIKE E'%${before}' || (lower(${part}::text COLLATE "und-x-icu") COLLATE "C") || '%'`;
  return `${narrowed} AND ${matchTest(condition, `e.${slot}`, place)}`;
}

export function isNegated(condition: Condition): boolean {
  return condition.kind === "equals" && condition.negated;
}

/** The column of the entries table that holds a field's values, or null. A null in it is no value. */
export function storedIn(column: Column, slots: Slots): string | null {
  return column.name === "published_at" ? "e.published_at" : slotOf(column, slots);
}

function slotOf(column: Column, slots: Slots): string | null {
  const slot = slots.slotOf(column);
  return slot === null ? null : `e.${slot}`;
}

function servedSql(condition: Condition, slots: Slots, place: Place): string | null {
  const stored = storedIn(condition.column, slots);
  if (stored === null) return null;
  switch (condition.kind) {
    case "equals":
      return equalSql(condition, stored, place);
    case "order":
      return orderSql(condition, stored, place);
    case "match":
      return null;
  }
}

function equalSql({ column, values }: Condition & { kind: "equals" }, stored: string, place: Place): string {
  const type = storedType(column);
  const operands: Value[] = values.map((value) => storedOperand(column, value));
  if (operands.length === 1) return `${stored} = ${place(operands[0] as string)}::${type}`;
  return `${stored} = ANY (${place(operands as string[])}::${type}[])`;
}

/** In this spelling, times are in order as texts are in any language. */
const TIME = /^\d{4}-\d{2}-\d{2}/;

function orderSql(condition: Condition & { kind: "order" }, stored: string, place: Place): string | null {
  const { column, operator, value } = condition;
  if (column.type === "date" || column.type === "datetime") {
    if (!TIME.test(value)) return null;
  } else if (column.type !== "number" && column.type !== "timestamp") return null;
  return `${stored} ${SIGNS[operator]} ${place(storedOperand(column, value))}::${storedType(column)}`;
}

/** A boolean is a number in its slot. */
function storedType(column: Column): string {
  return column.type === "boolean" ? "float8" : sqlType(column);
}

function storedOperand(column: Column, value: string): string {
  if (column.type === "timestamp") return timestampOperand(value);
  if (column.type === "boolean") return value === "true" ? "1" : "0";
  return value;
}
