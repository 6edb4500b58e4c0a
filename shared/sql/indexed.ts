/** Tests and orders that indexes serve: those of fields that stand in slots, and of the publication. */
import type { Column } from "../catalog.ts";
import { type Condition, isNegated } from "../condition.ts";
import { isTextual, sqlType } from "./column.ts";
import type { Slots } from "./slots.ts";
import { conditionSql, FEW, matchTest, type Place, SIGNS, timestampOperand } from "./where.ts";

/**
 * A test on an entry `e`, and which index finds what passes it: one of the column, in its order; the one of the parts of all texts,
 * which has no other use; or the one of the elements that are counted. Null where none does.
 */
export type Test = { readonly sql: string; readonly index: "ordered" | "parts" | "elements" | null };

/** `isForAny` says that the plan it is part of does for all values. */
export function testOf(condition: Condition, slots: Slots, place: Place, isForAny = false): Test {
  const served = servedSql(condition, slots, place);
  if (served !== null) return { sql: isNegated(condition) ? `(${served}) IS NOT TRUE` : served, index: "ordered" };
  const slot = slots.slotOf(condition.column);
  const isFound = slot !== null && isMatch(condition) && isTextual(condition.column) && !condition.text.includes("\0");
  if (!isFound) {
    const index = elementSlot(condition, slots) === null ? null : "elements";
    return { sql: conditionSql(condition, place), index };
  }
  return { sql: matchSql(condition, slot, place, isForAny), index: "parts" };
}

/** The slot under which the entries that have this element are counted, and those that have not. */
export function elementSlot(condition: Condition, slots: Slots): string | null {
  // One entry may have several of them.
  if (condition.kind !== "equals" || condition.values.length !== 1) return null;
  return condition.values.every((value) => Buffer.byteLength(value) <= LONGEST)
    ? slots.elementsOf(condition.column)
    : null;
}

/** Bytes of an element, or of a value of a pair: longer ones are not counted (schema/0016_value_counts.sql). */
export const LONGEST = 500;

type Match = Condition & { readonly kind: "match" };

function isMatch(condition: Condition): condition is Match {
  return condition.kind === "match";
}

/**
 * The texts of slots are the lines of one column, in which an index finds a part (schema/0008_slots.sql). A beginning is looked for
 * with the number of its line, and without the end of the line before: what all lines have costs more to find than it tells.
 */
function matchSql(condition: Match, slot: string, place: Place, isForAny: boolean): string {
  const { text, operator } = condition;
  const line = slot.slice(1);
  // Ends of lines are no others there.
  const stored = text.replaceAll("\n", "\r");
  const wanted = (value: string) => loweredSql(place(value), isForAny);
  const like = wanted(stored.replace(/[\\%_]/g, "\\$&"));
  const found = `e.texts LIKE '%${operator === "contains" ? "" : line}' || ${like} || '%'`;
  if (/^$|[\r\n]/.test(text)) return `${found} AND ${matchTest(condition, `e.${slot}`, place)}`;
  if (operator === "starts_with") return `${found} AND strpos(e.texts, E'\\n${line}' || ${wanted(stored)}) > 0`;
  const own = `split_part(split_part(e.texts, E'\\n${line}', 2), E'\\n', 1)`;
  return `${found} AND strpos(${own}, ${wanted(stored)}) > 0`;
}

/**
 * A text as it is looked for, under the collation of the columns: under another one their indexes are of no use. Where a plan does
 * for all values it is put into lower case once, and not for each row; a plan for one value knows it before.
 */
export function loweredSql(text: string, isForAny: boolean): string {
  const lower = `lower(${text}::text COLLATE "und-x-icu") COLLATE "C"`;
  return isForAny ? `(SELECT ${lower})` : `(${lower})`;
}

/**
 * Whether an index of parts finds the text whatever it is: then one plan does for all such texts. It knows three letters and
 * more, and in some locales those of ASCII alone.
 */
export function isFindable(text: string): boolean {
  return /[a-z0-9]{3}/i.test(text);
}

/** The texts that are looked for in others. */
export function textsIn(conditions: readonly Condition[]): string[] {
  return conditions.flatMap((condition) => (condition.kind === "match" ? [condition.text] : []));
}

/** The column of the entries table that holds a field's values, or null. A null in it is no value. */
export function storedIn(column: Column, slots: Slots): string | null {
  return column.type === "timestamp" ? `e.${column.name}` : slotOf(column, slots);
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
  return equalsAny(
    stored,
    values.map((value) => storedOperand(column, value)),
    storedType(column),
    place,
  );
}

/**
 * Is it one of some values of the type? Those of a few are told one by one: of a list that it does not know, the planner expects
 * far more than of one that it does, and would plan each anew. None is a list as well.
 */
export function equalsAny(sql: string, values: readonly string[], type: string, place: Place): string {
  if (values.length === 0 || values.length > FEW) return `${sql} = ANY (${place(values)}::${type}[])`;
  const places = values.map((value) => `${place(value)}::${type}`);
  return places.length === 1 ? `${sql} = ${places[0]}` : `${sql} = ANY (ARRAY[${places.join(", ")}])`;
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

/** A value as the column that stores it has it, in text. */
export function storedOperand(column: Column, value: string): string {
  if (column.type === "timestamp") return timestampOperand(value);
  if (column.type === "boolean") return value === "true" ? "1" : "0";
  return value;
}
