/**
 * How a column of an entry `e` reads in SQL: its value, its text and its order. A stored value that does not fit its
 * field (the field has changed its type since) reads as no value.
 */
import { type Column, type Field, TIMESTAMPS } from "../catalog.ts";

/** The SQL type in which a column compares. */
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

/** The value that equality and order compare, null where there is none. Not for `multiple` fields: see elementsSql. */
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

/** Whether a `multiple` field has a value that fits it. */
export function holdsElementsSql(column: Column): string {
  return `precast.holds_elements('${column.type}', e.data -> '${column.name}')`;
}

/** The elements of a `multiple` field, as a row source with one text column. */
export function elementsSql(column: Column): string {
  return `precast.elements('${column.type}', e.data -> '${column.name}')`;
}

/** The value as an answer spells it. */
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

/** The value by which a sort orders: text as people sort it, time by time. */
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

/** What an entry's row selects, in the order in which entry-row.ts's readEntryRow reads it. */
export function entryColumns(withRichText: boolean): string {
  const rich = withRichText ? "e.rich::text" : "NULL::text";
  const times = TIMESTAMPS.map((name) => `${timestampText(name)} AS ${name}`);
  return `e.id::text AS id, e.data::text AS data, ${rich} AS rich, ${times.join(", ")}`;
}

/** The same columns in a row that stands for no entry. */
export function noEntryColumns(): string {
  return ["id", "data", "rich", ...TIMESTAMPS].map((name) => `NULL::text AS ${name}`).join(", ");
}

function timestampText(name: string): string {
  return `to_char(e.${name} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"+00:00"')`;
}

/** Is this a text that a number may stand in, rather than a number? */
export function isTextual(column: Column): column is Field {
  return column.type === "text" || column.type === "select" || column.type === "media";
}

/** Is equality containment in `data`, which an index finds? Numbers are equal as doubles, and timestamps stand beside. */
export function isContainable(column: Column): column is Field {
  return column.type !== "timestamp" && column.type !== "number";
}
