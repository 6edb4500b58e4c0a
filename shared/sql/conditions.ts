/**
 * Turns filter conditions into SQL on `data`: the tests that an entry `e` must pass, for the conditions that no slot
 * serves. Those of a timestamp column are among them only for `contains` and `starts_with`.
 */
import {
  type Condition,
  type EqualsCondition,
  isNegated,
  type MatchCondition,
  type OrderCondition,
} from "../api/filter.ts";
import {
  elementsSql,
  equalsAny,
  holdsElementsSql,
  isContainable,
  isTextual,
  type Slots,
  sqlType,
  storedIn,
  storedOperand,
  storedType,
  textSql,
  valueSql,
} from "./columns.ts";
import { type Bind, MAX_PLACEHOLDERS } from "./query.ts";

/** SQL of the test for a condition. A negated test is true or false, never NULL. */
function conditionSql(condition: Condition, bind: Bind): string {
  const { column } = condition;
  const contained = condition.kind === "equals" ? containmentSql(condition, bind) : null;
  const test = contained ?? (column.multiple ? anyElementSql(condition, bind) : singleSql(condition, bind));
  return condition.kind === "equals" && condition.negated ? `(${test}) IS NOT TRUE` : test;
}

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
  return `EXISTS (SELECT FROM ${elementsSql(condition.column)} AS value WHERE ${valueTest(condition, "value", "value", bind)})`;
}

function singleSql(condition: Condition, bind: Bind): string {
  return valueTest(condition, `(${valueSql(condition.column)})`, `(${textSql(condition.column)})`, bind);
}

/** The condition on one value. `value` is SQL of the value to compare, `text` SQL of the text that an answer shows. */
function valueTest(condition: Condition, value: string, text: string, bind: Bind): string {
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
function matchTest({ text: wanted, operator }: MatchCondition, text: string, bind: Bind): string {
  // PostgreSQL cannot store U+0000, so no text contains it.
  if (wanted.includes("\0")) return "false";
  const operand = `lower(${bind(wanted)}::text COLLATE "und-x-icu")`;
  const stored = `lower(${text} COLLATE "und-x-icu")`;
  return operator === "contains" ? `strpos(${stored}, ${operand}) > 0` : `starts_with(${stored}, ${operand})`;
}

const SIGNS = { gt: ">", gte: ">=", lt: "<", lte: "<=" } as const;

function orderTest(condition: OrderCondition, value: string, bind: Bind): string {
  const { column, operator } = condition;
  const sign = SIGNS[operator];
  if (isTextual(column)) return `precast.double(${value}) ${sign} ${bind(condition.value)}::float8`;
  const collation = sqlType(column) === "text" ? ' COLLATE "C"' : "";
  return `${value}${collation} ${sign} ${bind(condition.value)}::${sqlType(column)}`;
}

// Builds the tests of conditions, by an index where one serves: that of a slot, a timestamp, all texts, or elements.

/**
 * The kind of index that finds the entries that meet a condition. `ordered`: the B-tree index of a column, which also
 * gives its order. `trigram`: the trigram index of all texts in slots, which gives no order. `elements`: the GIN index of
 * values, for elements that are counted.
 */
type Index = "ordered" | "trigram" | "elements";

export function findIndex(condition: Condition, slots: Slots): Index | null {
  const { kind, column } = condition;
  if (storedIn(column, slots) !== null && isInOrder(condition)) return "ordered";
  if (kind === "match" && slots.slotOf(column) !== null && isTextual(column) && !condition.text.includes("\0"))
    return "trigram";
  return elementSlot(condition, slots) === null ? null : "elements";
}

/** Times in this spelling sort chronologically as texts, under any collation. */
const TIME = /^\d{4}-\d{2}-\d{2}/;

/** Whether the entries that meet the condition lie together in the order of the column that holds the values. */
function isInOrder(condition: Condition): boolean {
  if (condition.kind === "equals") return true;
  if (condition.kind === "match") return isPrefix(condition);
  const { type } = condition.column;
  return type === "date" || type === "datetime"
    ? TIME.test(condition.value)
    : type === "number" || type === "timestamp";
}

/** SQL of the test for a condition on an entry `e`. `isGeneric` says that the statement gets one plan for all values. */
export function testSql(condition: Condition, slots: Slots, bind: Bind, isGeneric = false): string {
  switch (findIndex(condition, slots)) {
    case "ordered": {
      const test = orderedSql(condition, storedIn(condition.column, slots) as string, bind);
      return isNegated(condition) ? `(${test}) IS NOT TRUE` : test;
    }
    case "trigram":
      return matchSql(condition as MatchCondition, slots.slotOf(condition.column) as string, bind, isGeneric);
    default:
      return conditionSql(condition, bind);
  }
}

/** `stored` is SQL of the entries column that holds the values. */
function orderedSql(condition: Condition, stored: string, bind: Bind): string {
  const { column } = condition;
  switch (condition.kind) {
    case "equals": {
      const operands = condition.values.map((value) => storedOperand(column, value));
      return equalsAny(stored, operands, storedType(column), bind);
    }
    case "order": {
      const operand = bind(storedOperand(column, condition.value));
      return `${stored} ${SIGNS[condition.operator]} ${operand}::${storedType(column)}`;
    }
    case "match":
      return prefixSql(condition, stored, bind);
  }
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

// Builds the test of a prefix as a range of the order of texts, which a B-tree index serves.

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

// Builds the tests on parts of texts, and says which texts the trigram index finds.

/**
 * The test of a `contains` or `starts_with` condition on a slot. The column `texts` holds the lower-case texts of all
 * slots, one line each, which begins with the number of the slot (schema/0004_slots.sql), and a trigram index finds
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
  return conditions.flatMap((condition) =>
    condition.kind === "match" && !isPrefix(condition) ? [condition.text] : [],
  );
}
