/**
 * Looks up how many entries match in counts that triggers keep on every write (schema/0007_counts.sql), so that nothing
 * has to be counted.
 */
import type { Column } from "../api/catalog.ts";
import type { Condition, EqualsCondition } from "../api/filter.ts";
import { equalsAny, keptTotalSql, type Slots, storedOperand } from "./columns.ts";
import { elementSlot, MAX_COUNTED_SIZE } from "./conditions.ts";
import { type Bind, type Query, type Row, TYPES_OF_APP } from "./query.ts";

/** SQL of one row `total`: the number of entries that meet the conditions. Null when no maintained count gives it. */
export function maintainedCount(conditions: readonly Condition[], slots: Slots, bind: Bind): string | null {
  const [one, other, ...more] = conditions;
  if (one === undefined) return keptTotalSql(slots.typeId);
  if (more.length > 0) return null;
  if (other === undefined) return isEqual(one) ? totalOfOne(one, slots, bind) : null;
  return isEqual(one) && isEqual(other) ? totalOfBoth(one, other, slots, bind) : null;
}

function isEqual(condition: Condition): condition is EqualsCondition {
  return condition.kind === "equals";
}

function totalOfOne(condition: EqualsCondition, slots: Slots, bind: Bind): string | null {
  const { column } = condition;
  const slot = column.multiple ? elementSlot(condition, slots) : isCounted(column) ? slots.slotOf(column) : null;
  if (slot === null) return null;
  const equal = totalIn(slots, slot, listOperands(condition), bind);
  return condition.negated ? differenceSql(keptTotalSql(slots.typeId), equal) : equal;
}

/** Null for two negated conditions, which are rare. */
function totalOfBoth(one: EqualsCondition, other: EqualsCondition, slots: Slots, bind: Bind): string | null {
  if (one.negated) return other.negated ? null : totalOfBoth(other, one, slots, bind);
  const both = totalOfPairs(one, other, slots, bind);
  if (both === null || !other.negated) return both;
  const first = totalOfOne(one, slots, bind);
  return first === null ? null : differenceSql(first, both);
}

/** SQL of the number of entries with one of the first condition's values and one of the second's; null if not kept. */
function totalOfPairs(one: EqualsCondition, other: EqualsCondition, slots: Slots, bind: Bind): string | null {
  const [first, second] = [slots.slotOf(one.column), slots.slotOf(other.column)];
  if (first === null || second === null || first === second) return null;
  if (first > second) return totalOfPairs(other, one, slots, bind);
  if (!slots.paired.includes(first) || !slots.paired.includes(second)) return null;
  const [firsts, seconds] = [listOperands(one), listOperands(other)];
  const isTooLong = [...firsts, ...seconds].some((value) => Buffer.byteLength(value) > MAX_COUNTED_SIZE);
  if (isTooLong || firsts.length * seconds.length > MAX_PAIRS) return null;
  const pairs = firsts.flatMap((value) => seconds.map((another) => writePair(value, another)));
  return totalIn(slots, `${first} ${second}`, pairs, bind);
}

/** Largest number of pairs of values whose counts are looked up for one total: so many are still found quickly. */
const MAX_PAIRS = 100;

/** The key under which a pair of values is counted, as the SQL function precast.pair_of forms it. */
function writePair(one: string, other: string): string {
  return `${Buffer.byteLength(one)} ${one}${other}`;
}

/** SQL of one row `total`: the number of entries with a value in the column. Null when the column has no slot. */
export function keptWithValue(column: Column, slots: Slots): string | null {
  const slot = slots.slotOf(column);
  return slot === null ? null : valueCountSql(slots.typeId, slot);
}

/** Whether the entries with each value of the column are counted. */
function isCounted({ type }: Column): boolean {
  return type === "select" || type === "boolean" || type === "relation";
}

function listOperands({ column, values }: EqualsCondition): string[] {
  return values.map((value) => storedOperand(column, value));
}

function totalIn(slots: Slots, slot: string, values: readonly string[], bind: Bind): string {
  return `${valueCountSql(slots.typeId, slot)} AND ${equalsAny("value", values, "text", bind)}`;
}

/** SQL of one row `total`: by how much the `total` of one row exceeds that of another. */
export function differenceSql(all: string, some: string): string {
  return `SELECT all_of_them.total - some_of_them.total AS total FROM (${all}) AS all_of_them, (${some}) AS some_of_them`;
}

function valueCountSql(typeId: string, slot: string): string {
  return `SELECT coalesce(sum(change), 0) AS total FROM precast.value_counts WHERE content_type_id = ${typeId} AND slot = '${slot}'`;
}

// Builds the SQL that reads how many published entries types have, which the database keeps (schema/0007_counts.sql).

/** The number of published entries of each published type: rows of [slug, count]. */
export function entryCountsQuery(appKey: string): Query {
  const text = `SELECT type.slug, (${keptTotalSql("type.id")})::text
FROM ${TYPES_OF_APP}`;
  return { text, values: [appKey], recurringPlan: "generic" };
}

/** Published entries by slug, from the rows of entryCountsQuery. */
export function readCounts(rows: readonly Row[]): Map<string, number> {
  return new Map(rows.map(([slug, count]) => [slug as string, Number(count)]));
}

// Builds the query for the content version of content types, which identifies the state of their entries.

/**
 * The content version of the published types among `slugs`: one row with a text that stays the same only while entries of
 * all of them do (schema/0007_counts.sql). Queries of entries also return it, for the snapshot in which they see them.
 */
export function contentVersionQuery(appKey: string, slugs: readonly string[]): Query {
  const text = `SELECT ${CONTENT_VERSION} FROM ${TYPES_OF_APP} AND type.slug = ANY ($2::text[])`;
  return { text, values: [appKey, slugs], recurringPlan: "generic" };
}

/** SQL of the content version of the row `type`. It contains the slug, as two types may swap slugs, and never a space. */
export function contentVersionSql(typeId: string): string {
  return `(type.slug || ':' || ${typeId} || ':' || (
    SELECT coalesce(sum(mark), 0) FROM precast.entry_counts WHERE content_type_id = ${typeId}))`;
}

/** SQL aggregate: the content versions of the selected types, joined by spaces. */
export const CONTENT_VERSION = `string_agg(${contentVersionSql("type.id")}, ' ' ORDER BY type.id)`;
