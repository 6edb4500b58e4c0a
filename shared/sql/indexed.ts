/** Builds the tests and sort keys that indexes serve: those on fields with a slot and on the timestamp columns. */
import type { Column } from "../catalog.ts";
import {
  type Condition,
  type EqualsCondition,
  isNegated,
  type MatchCondition,
  type OrderCondition,
} from "../condition.ts";
import { isTextual, sqlType } from "./column.ts";
import type { Slots } from "./slots.ts";
import { type Bind, conditionSql, MAX_PLACEHOLDERS, matchTest, SIGNS } from "./where.ts";

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
    slot !== null && isMatch(condition) && isTextual(condition.column) && !condition.text.includes("\0");
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

/** Size limit, in bytes, of a counted element and of each value of a counted pair (schema/0016_value_counts.sql). */
export const MAX_COUNTED_SIZE = 500;

function isMatch(condition: Condition): condition is MatchCondition {
  return condition.kind === "match";
}

/**
 * The test of a `contains` or `starts_with` condition on a slot. The column `texts` holds the lower-case texts of all
 * slots, one line each, which begins with the number of the slot (schema/0008_slots.sql), and a trigram index finds
 * parts of it. To find a prefix, the LIKE pattern contains the slot number but not the line feed before it: every row
 * has line feeds, so looking for one costs more than it narrows.
 */
function matchSql(condition: MatchCondition, slot: string, bind: Bind, isGeneric: boolean): string {
  const { text, operator } = condition;
  const line = slot.slice(1);
  // In `texts`, a line feed within a value is stored as a carriage return.
  const stored = text.replaceAll("\n", "\r");
  const wanted = (value: string) => loweredSql(bind(value), isGeneric);
  const like = wanted(stored.replace(/[\\%_]/g, "\\$&"));
  const found = `e.texts LIKE '%${operator === "contains" ? "" : line}' || ${like} || '%'`;
  if (/[\r\n]/.test(text)) return `${found} AND ${matchTest(condition, `e.${slot}`, bind)}`;
  if (operator === "starts_with") return `${found} AND strpos(e.texts, E'\\n${line}' || ${wanted(stored)}) > 0`;
  const own = `split_part(split_part(e.texts, E'\\n${line}', 2), E'\\n', 1)`;
  return `${found} AND strpos(${own}, ${wanted(stored)}) > 0`;
}

/**
 * SQL of a search text in lower case, under the collation of the searched columns: their indexes serve no other one. In
 * a plan for all values a subquery computes it once, not once per row; a plan for one value contains the result.
 */
export function loweredSql(text: string, isGeneric: boolean): string {
  const lower = `lower(${text}::text COLLATE "und-x-icu") COLLATE "C"`;
  return isGeneric ? `(SELECT ${lower})` : `(${lower})`;
}

/** The number of letters from which an index finds parts of words and texts. */
export const INDEXED_LENGTH = 3;

/**
 * Whether the trigram index finds this text under every locale: then one query plan fits all such texts. The index
 * needs three letters or digits in a row, and in some locales it handles ASCII only.
 */
export function isTrigramServed(text: string): boolean {
  return /[a-z0-9]{3}/i.test(text);
}

/** The texts of the `contains` and `starts_with` conditions that the trigram index may serve. */
export function textsIn(conditions: readonly Condition[]): string[] {
  return conditions.flatMap((condition) => (isMatch(condition) && !isPrefix(condition) ? [condition.text] : []));
}

/** SQL of the entries column that holds a field's values; null when there is none. NULL in it means no value. */
export function storedIn(column: Column, slots: Slots): string | null {
  return column.type === "timestamp" ? `e.${column.name}` : slotOf(column, slots);
}

function slotOf(column: Column, slots: Slots): string | null {
  const slot = slots.slotOf(column);
  return slot === null ? null : `e.${slot}`;
}

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

/**
 * Whether all texts that meet the condition lie in one range of the order by "und-x-icu". That is certain for those that
 * begin, in either case, with letters and digits of ASCII and spaces: no character that follows changes their weights
 * there.
 */
export function isPrefix(condition: Condition): boolean {
  if (condition.kind !== "match" || condition.operator !== "starts_with") return false;
  return isTextual(condition.column) && /^[a-z0-9 ]+$/i.test(condition.text);
}

/** The range ends where texts begin with the next character. It also holds texts with accents, hence the last test. */
function prefixSql({ text }: MatchCondition, stored: string, bind: Bind): string {
  const lower = text.toLowerCase();
  const prefix = `${bind(lower)}::text`;
  const end = `${bind(lower.slice(0, -1) + following(lower.slice(-1)))}::text`;
  return `${stored} >= ${prefix} AND ${stored} < ${end} AND starts_with(lower(${stored}), ${prefix})`;
}

/** The order by "und-x-icu" has the space before other signs, then digits, then Latin letters, then Greek ones. */
const FOLLOWING: Readonly<Record<string, string>> = { " ": "_", "9": "a", z: "α" };

function following(character: string): string {
  return FOLLOWING[character] ?? String.fromCharCode(character.charCodeAt(0) + 1);
}

function equalSql({ column, values }: EqualsCondition, stored: string, bind: Bind): string {
  return equalsAny(
    stored,
    values.map((value) => storedOperand(column, value)),
    storedType(column),
    bind,
  );
}

/**
 * SQL that tests whether `sql` equals one of the values, cast to the SQL type `type`. Up to MAX_PLACEHOLDERS values get
 * a placeholder each: for an array of unknown length the planner expects far more rows than for known values, so
 * PostgreSQL would plan every execution anew. No values are sent as an empty array.
 */
export function equalsAny(sql: string, values: readonly string[], type: string, bind: Bind): string {
  if (values.length === 0 || values.length > MAX_PLACEHOLDERS) return `${sql} = ANY (${bind(values)}::${type}[])`;
  const placeholders = placeholdersOf(values, type, bind);
  return placeholders.length === 1 ? `${sql} = ${placeholders[0]}` : `${sql} = ANY (ARRAY[${placeholders.join(", ")}])`;
}

function placeholdersOf(values: readonly string[], type: string, bind: Bind): string[] {
  return values.map((value) => `${bind(value)}::${type}`);
}

/** SQL of an array of the condition's values, each of them once, as the column that stores the field holds them. */
export function operandsSql({ column, values }: EqualsCondition, bind: Bind): string {
  const operands = new Set(values.map((value) => storedOperand(column, value)));
  return `ARRAY[${placeholdersOf([...operands], storedType(column), bind).join(", ")}]`;
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

/**
 * Converts a canonical instant into text that PostgreSQL can read. PostgreSQL has no year 0000, and `-` and `~`, which
 * stand for instants before and after the years of four digits, are not its syntax: all of them become infinities.
 */
function timestampOperand(text: string): string {
  if (text === "~") return "infinity";
  return text === "-" || text.startsWith("0000") ? "-infinity" : text;
}
