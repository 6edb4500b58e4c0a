/** Builds the tests and sort keys that indexes serve: those on fields with a slot and on the timestamp columns. */
import type { Column } from "../catalog.ts";
import { type Condition, isNegated } from "../condition.ts";
import { isTextual, sqlType } from "./column.ts";
import type { Slots } from "./slots.ts";
import { conditionSql, FEW, matchTest, type Place, SIGNS, timestampOperand } from "./where.ts";

/**
 * A test on an entry `e`, and the kind of index that finds the entries that pass it. `ordered`: the B-tree index of a
 * column, which also gives its order. `parts`: the trigram index of all texts in slots, which gives no order.
 * `elements`: the GIN index of values, for elements that are counted. Null: none of these.
 */
export type Test = { readonly sql: string; readonly index: "ordered" | "parts" | "elements" | null };

/** Builds the test of a condition. `isForAny` says that the statement gets one query plan for all values. */
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

/**
 * The slot that counts the entries with the element that the condition names, which serves the negated condition too.
 * Null when no count gives the total.
 */
export function elementSlot(condition: Condition, slots: Slots): string | null {
  // Counts of several elements cannot be added up, for one entry may have several of them.
  if (condition.kind !== "equals" || condition.values.length !== 1) return null;
  return condition.values.every((value) => Buffer.byteLength(value) <= LONGEST)
    ? slots.elementsOf(condition.column)
    : null;
}

/** Size limit, in bytes, of a counted element and of each value of a counted pair (schema/0016_value_counts.sql). */
export const LONGEST = 500;

type Match = Condition & { readonly kind: "match" };

function isMatch(condition: Condition): condition is Match {
  return condition.kind === "match";
}

/**
 * The test of a `contains` or `starts_with` condition on a slot. The column `texts` holds the lower-case texts of all
 * slots, one line each, which begins with the number of the slot (schema/0008_slots.sql), and a trigram index finds
 * parts of it. To find a prefix, the LIKE pattern contains the slot number but not the line feed before it: every row
 * has line feeds, so looking for one costs more than it narrows.
 */
function matchSql(condition: Match, slot: string, place: Place, isForAny: boolean): string {
  const { text, operator } = condition;
  const line = slot.slice(1);
  // In `texts`, a line feed within a value is stored as a carriage return.
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
 * SQL of a search text in lower case, under the collation of the searched columns: their indexes serve no other one. In
 * a plan for all values a subquery computes it once, not once per row; a plan for one value contains the result.
 */
export function loweredSql(text: string, isForAny: boolean): string {
  const lower = `lower(${text}::text COLLATE "und-x-icu") COLLATE "C"`;
  return isForAny ? `(SELECT ${lower})` : `(${lower})`;
}

/**
 * Whether the trigram index finds this text under every locale: then one query plan fits all such texts. The index
 * needs three letters or digits in a row, and in some locales it handles ASCII only.
 */
export function isFindable(text: string): boolean {
  return /[a-z0-9]{3}/i.test(text);
}

/** The texts of the `contains` and `starts_with` conditions. */
export function textsIn(conditions: readonly Condition[]): string[] {
  return conditions.flatMap((condition) => (condition.kind === "match" ? [condition.text] : []));
}

/** SQL of the entries column that holds a field's values; null when there is none. NULL in it means no value. */
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
 * SQL that tests whether `sql` equals one of the values, cast to the SQL type `type`. Up to FEW values get a
 * placeholder each: for an array of unknown length the planner expects far more rows than for known values, so
 * PostgreSQL would plan every execution anew. No values are sent as an empty array.
 */
export function equalsAny(sql: string, values: readonly string[], type: string, place: Place): string {
  if (values.length === 0 || values.length > FEW) return `${sql} = ANY (${place(values)}::${type}[])`;
  const places = values.map((value) => `${place(value)}::${type}`);
  return places.length === 1 ? `${sql} = ${places[0]}` : `${sql} = ANY (ARRAY[${places.join(", ")}])`;
}

/** Times in this spelling sort chronologically as texts, under any collation. */
const TIME = /^\d{4}-\d{2}-\d{2}/;

function orderSql(condition: Condition & { kind: "order" }, stored: string, place: Place): string | null {
  const { column, operator, value } = condition;
  if (column.type === "date" || column.type === "datetime") {
    if (!TIME.test(value)) return null;
  } else if (column.type !== "number" && column.type !== "timestamp") return null;
  return `${stored} ${SIGNS[operator]} ${place(storedOperand(column, value))}::${storedType(column)}`;
}

/** The SQL type of the column that stores a field. A slot stores a boolean as the number 0 or 1. */
function storedType(column: Column): string {
  return column.type === "boolean" ? "float8" : sqlType(column);
}

/** The text of a canonical value as the column that stores the field holds it. */
export function storedOperand(column: Column, value: string): string {
  if (column.type === "timestamp") return timestampOperand(value);
  if (column.type === "boolean") return value === "true" ? "1" : "0";
  return value;
}
