/**
 * Builds the SQL that reads a column of an entry `e`: its value, its text and its sort key. A stored value that does
 * not fit its field, because the type of the field has changed since, reads as NULL.
 */
import { type Column, type Field, TIMESTAMPS } from "../api/catalog.ts";
import type { EqualsCondition } from "../api/filter.ts";
import { type Bind, MAX_PLACEHOLDERS, type Query, type Row, TYPE_OF_APP } from "./query.ts";

/** The SQL type in which the values of a column are compared. */
export function sqlType(column: Column): string {
  switch (column.type) {
    case "number":
      return "float8";
    case "boolean":
      return "boolean";
    case "timestamp":
      return "timestamptz";
    default:
      return "text";
  }
}

/** SQL of the value that equality and order compare; NULL if there is none. For `multiple` fields see elementsSql. */
export function valueSql(column: Column): string {
  const { name } = column;
  const text = `e.data ->> '${name}'`;
  switch (column.type) {
    case "timestamp":
      return `e.${name}`;
    case "number":
      return `precast.double(e.data -> '${name}')`;
    case "boolean":
      return `CASE WHEN jsonb_typeof(e.data -> '${name}') = 'boolean' THEN (${text})::boolean END`;
    case "date":
      return `CASE WHEN precast.is_day(${text}) THEN ${text} END`;
    case "datetime":
      return `CASE WHEN precast.is_instant(${text}) THEN ${text} END`;
    case "relation":
      return `CASE WHEN precast.is_uuid(${text}) THEN ${text} END`;
    default:
      return `CASE WHEN jsonb_typeof(e.data -> '${name}') = 'string' THEN ${text} END`;
  }
}

/** SQL that tests whether a `multiple` field holds an array of elements that fit it. */
export function holdsElementsSql(column: Column): string {
  return `precast.holds_elements('${column.type}', e.data -> '${column.name}')`;
}

/** The elements of a `multiple` field, as a row source with one text column. */
export function elementsSql(column: Column): string {
  return `precast.elements('${column.type}', e.data -> '${column.name}')`;
}

/** SQL of the value as text, spelled as in an answer. */
export function textSql(column: Column): string {
  switch (column.type) {
    case "timestamp":
      return timestampText(column.name);
    case "number":
      return `CASE WHEN jsonb_typeof(e.data -> '${column.name}') = 'number' THEN e.data ->> '${column.name}' END`;
    case "boolean":
      return `CASE WHEN jsonb_typeof(e.data -> '${column.name}') = 'boolean' THEN e.data ->> '${column.name}' END`;
    default:
      return valueSql(column);
  }
}

/** SQL of the sort key of a column: texts sort in the Unicode root collation, times chronologically. */
export function orderKeySql(column: Column): string {
  switch (column.type) {
    case "text":
    case "select":
    case "media":
      return `(${valueSql(column)}) COLLATE "und-x-icu"`;
    case "date":
    case "datetime":
      return `(${valueSql(column)}) COLLATE "C"`;
    default:
      return valueSql(column);
  }
}

/** The select list of an entry's row, in the order in which readEntryRow reads it. */
export function entryColumns(withRichText: boolean): string {
  const rich = withRichText ? "e.rich::text" : "NULL::text";
  // A third of the time that to_char takes, and like that independent of all settings.
  const times = TIMESTAMPS.map((name) => `to_json(e.${name} AT TIME ZONE INTERVAL '0')::text AS ${name}`);
  return `e.id::text AS id, e.data::text AS data, ${rich} AS rich, ${times.join(", ")}`;
}

/** The columns of an entry that an answer shows, and their SQL types. */
const STORED: readonly (readonly [string, string])[] = [
  ["id", "uuid"],
  ["data", "jsonb"],
  ["rich", "jsonb"],
  ...TIMESTAMPS.map((name) => [name, "timestamptz"] as const),
];

/** The columns from which entryColumns makes a row: subqueries select these, and the query turns them into text once. */
export function storedColumns(): string {
  return STORED.map(([name]) => `e.${name}`).join(", ");
}

/** The columns of storedColumns, all NULL, for a row that stands for no entry. */
export function noStoredColumns(): string {
  return STORED.map(([name, type]) => `NULL::${type} AS ${name}`).join(", ");
}

function timestampText(name: string): string {
  return `to_char(e.${name} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"+00:00"')`;
}

/** Whether the field holds texts. A text may spell a number, which `gt`, `gte`, `lt` and `lte` compare. */
export function isTextual(column: Column): column is Field {
  return column.type === "text" || column.type === "select" || column.type === "media";
}

/**
 * Whether equality can be tested as containment in `data`, which a GIN index serves. False for numbers, which are
 * compared as doubles, and for timestamps, which are columns of their own.
 */
export function isContainable(column: Column): column is Field {
  return column.type !== "timestamp" && column.type !== "number";
}

// Names the entries columns that hold the values of fields, and writes values as these columns hold them.

/** SQL of the entries column that holds a field's values; null when there is none. NULL in it means no value. */
export function storedIn(column: Column, slots: Slots): string | null {
  return column.type === "timestamp" ? `e.${column.name}` : findSlot(column, slots);
}

function findSlot(column: Column, slots: Slots): string | null {
  const slot = slots.slotOf(column);
  return slot === null ? null : `e.${slot}`;
}

/** The SQL type of the column that stores a field. A slot stores a boolean as the number 0 or 1. */
export function storedType(column: Column): string {
  return column.type === "boolean" ? "float8" : sqlType(column);
}

/** The text of a canonical value as the column that stores the field holds it. */
export function storedOperand(column: Column, value: string): string {
  if (column.type === "timestamp") return timestampOperand(value);
  if (column.type === "boolean") return value === "true" ? "1" : "0";
  return value;
}

/**
 * Converts a canonical timestamp into text that PostgreSQL can read. PostgreSQL has no year 0000, and `-` and `~`, which
 * stand for timestamps before and after the years of four digits, are not its syntax: all of them become infinities.
 */
function timestampOperand(text: string): string {
  if (text === "~") return "infinity";
  return text === "-" || text.startsWith("0000") ? "-infinity" : text;
}

/**
 * SQL that tests whether `sql` equals one of the values, cast to the SQL type `type`. Up to MAX_PLACEHOLDERS values get
 * a placeholder each: for an array of unknown length the planner expects far more rows than for known values, so
 * PostgreSQL would plan every execution anew. No values are sent as an empty array.
 */
export function equalsAny(sql: string, values: readonly string[], type: string, bind: Bind): string {
  if (values.length === 0 || values.length > MAX_PLACEHOLDERS) return `${sql} = ANY (${bind(values)}::${type}[])`;
  const placeholders = bindEach(values, type, bind);
  return placeholders.length === 1 ? `${sql} = ${placeholders[0]}` : `${sql} = ANY (ARRAY[${placeholders.join(", ")}])`;
}

function bindEach(values: readonly string[], type: string, bind: Bind): string[] {
  return values.map((value) => `${bind(value)}::${type}`);
}

/** SQL of an array of the condition's values, each of them once, as the column that stores the field holds them. */
export function operandsSql({ column, values }: EqualsCondition, bind: Bind): string {
  const operands = new Set(values.map((value) => storedOperand(column, value)));
  return `ARRAY[${bindEach([...operands], storedType(column), bind).join(", ")}]`;
}

// Reads the slots of a type: the shared, indexed columns of the entries table that hold its filtered and sorted
// fields. The database assigns them (schema/0004_slots.sql) and may reassign them at any time, so each query names
// the map that it was written for.

export type Slots = {
  /** The `id` of the type's row in `content_types`. */
  readonly typeId: string;
  /** The map from slots to fields, as the JSON text that the database returned. */
  readonly map: string;
  readonly slotOf: (column: Column) => string | null;
  /** The slot under which the elements of a `multiple` field are counted, or null. Such a slot is not a column. */
  readonly elementsOf: (column: Column) => string | null;
  /** The slots whose values are counted in pairs (schema/0007_counts.sql). */
  readonly paired: readonly string[];
  /** Whether the type was small when the slots were read (isSmallSql in counts.ts). */
  readonly isSmall: boolean;
};

/** The slots of each type as they were last read, by app key and slug. */
export type SlotCache = Map<string, Slots>;

type StoredMap = Readonly<Record<string, readonly [field: string, type: string] | readonly string[]>>;

const LONG = "long";
/** The first letter of the slots of `multiple` fields. */
const ELEMENTS_PREFIX = "m";

export const NO_SLOTS: Slots = {
  typeId: "0",
  map: "{}",
  slotOf: () => null,
  elementsOf: () => null,
  paired: [],
  isSmall: false,
};

/** The slots of a published type: one row of [type id, slot map, slots counted in pairs, is it small], or none. */
export function slotsQuery(appKey: string, slug: string): Query {
  const text = `SELECT type.id::text, slots.map::text, array_to_json(slots.paired)::text, (${isSmallSql("type.id")})::text
FROM precast.slots, ${TYPE_OF_APP} AND slots.content_type_id = type.id`;
  return { text, values: [appKey, slug] };
}

/** Reads a row of slotsQuery; null when there is no row, because the type does not exist or is not published. */
export function readSlots(row: Row | undefined): Slots | null {
  const [typeId, map, paired, isSmall] = row ?? [];
  if (typeId == null || map == null || paired == null) return null;
  const slots = new Map(
    Object.entries(JSON.parse(map) as StoredMap)
      .filter(([slot]) => slot !== LONG)
      .map(([slot, [field, type]]) => [`${field} ${type} ${slot.startsWith(ELEMENTS_PREFIX)}`, slot]),
  );
  const slotOf = ({ name, type }: Column, multiple: boolean) => slots.get(`${name} ${type} ${multiple}`) ?? null;
  // The key includes the type: a field that has changed its type since the tree was built has a slot of another
  // meaning.
  return {
    typeId,
    map,
    slotOf: (column) => (column.multiple ? null : slotOf(column, false)),
    elementsOf: (column) => (column.multiple ? slotOf(column, true) : null),
    paired: JSON.parse(paired) as string[],
    isSmall: isSmall === "true",
  };
}

const MAX_TYPES = 10_000;

export function cacheSlots(cache: SlotCache, key: string, slots: Slots): void {
  if (cache.size >= MAX_TYPES) cache.clear();
  cache.set(key, slots);
}

/** SQL of one row `total`: the number of published entries of a type, from the kept counts (schema/0007_counts.sql). */
export function keptTotalSql(typeId: string): string {
  return `SELECT coalesce(sum(change), 0) AS total FROM precast.entry_counts WHERE content_type_id = ${typeId}`;
}

/**
 * Largest number of published entries of a small type: running any plan that uses an index of the type takes less time
 * than planning for the values.
 */
const MAX_SMALL_ENTRIES = 1_000;

/** SQL of a boolean: whether the type has at most MAX_SMALL_ENTRIES published entries. */
export function isSmallSql(typeId: string): string {
  return `(${keptTotalSql(typeId)}) <= ${MAX_SMALL_ENTRIES}`;
}
