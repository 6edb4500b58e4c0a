/**
 * Builds the SQL that reads a column of an entry `e`: its value, its text and its sort key. A stored value that does
 * not fit its field, because the type of the field has changed since, reads as NULL.
 */
import { type Column, type Field, TIMESTAMPS } from "../catalog.ts";

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

/** The select list of an entry's row, in the order in which readEntryRow (entry-row.ts) reads it. */
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
