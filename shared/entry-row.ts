/** Reads an entry from a database row and renders its values as JSON texts. Source: contract.md section 2. */
import type { Column, Field } from "./catalog.ts";
import { oncePerObject } from "./per-object.ts";
import type { Row } from "./query.ts";
import { compact, compareMembers, elementsOf, pickMembers } from "./raw.ts";
import { isDate } from "./value.ts";

/**
 * An entry that entryColumns (sql/column.ts) has selected. `data` and `rich` (rich text only) are texts of jsonb objects
 * that hold values by field name. Timestamps are spelled as in answers.
 */
export type EntryRow = {
  readonly id: string;
  readonly data: string;
  /** Null when the query did not select it. */
  readonly rich: string | null;
  readonly published_at: string;
  readonly created_at: string;
  readonly updated_at: string;
};

/** Reads an entry from the columns that begin at `offset`; null when an outer join found no entry. */
export function readEntryRow(row: Row, offset: number): EntryRow | null {
  const [id, data, rich] = [row[offset], row[offset + 1], row[offset + 2] || null];
  const [published, created, updated] = [row[offset + 3], row[offset + 4], row[offset + 5]];
  if (id == null || data == null || published == null || created == null || updated == null) return null;
  const [published_at, created_at, updated_at] = [spelled(published), spelled(created), spelled(updated)];
  return { id, data, rich, published_at, created_at, updated_at };
}

/**
 * Reads the entries of a page (pageQuery in sql/page-query.ts): a line for each, with tabs between the columns. No value
 * contains either. Rich text that was not selected is an empty text. Null is a page without entries.
 */
export function readEntryLines(page: string | null): EntryRow[] {
  return page === null ? [] : page.split("\n").map((line) => readEntryRow(line.split("\t"), 0) as EntryRow);
}

/** A timestamp as an answer has it, from `"2026-03-01T09:30:00"` with or without a fraction of up to three digits. */
function spelled(json: string): string {
  return `${json.slice(1, 20)}.${json.slice(21, -1).padEnd(3, "0")}+00:00`;
}

/** The values that an answer shows for `columns`, in their order, as JSON texts. */
export function columnValues(columns: readonly Column[], row: EntryRow): string[] {
  const { data, rich } = layoutOf(columns);
  const values = columns.map((column) => (column.type === "timestamp" ? `"${row[column.name]}"` : "null"));
  fill(values, columns, data, row.data);
  if (row.rich !== null && rich.names.length > 0) fill(values, columns, rich, row.rich);
  return values;
}

/** Names of columns in the order in which jsonb stores object members, and for each its index in `columns`. */
type Placed = { readonly names: readonly string[]; readonly places: readonly number[] };
type Layout = { readonly data: Placed; readonly rich: Placed };

/** Remembered, because most requests to a type show the same columns. */
const layoutOf = oncePerObject(
  (columns: readonly Column[]): Layout => ({
    data: placedOf(columns, ({ type }) => type !== "rich_text" && type !== "timestamp"),
    rich: placedOf(columns, ({ type }) => type === "rich_text"),
  }),
);

function placedOf(columns: readonly Column[], isIncluded: (column: Column) => boolean): Placed {
  const names = columns.filter(isIncluded).map(({ name }) => name);
  names.sort(compareMembers);
  return { names, places: names.map((name) => columns.findIndex((column) => column.name === name)) };
}

function fill(values: string[], columns: readonly Column[], { names, places }: Placed, object: string): void {
  for (const [index, raw] of pickMembers(object, names).entries()) {
    const place = places[index] as number;
    if (raw !== undefined) values[place] = renderValue(columns[place] as Field, raw);
  }
}

/** The stored value as JSON text; `null` when it no longer fits the field, whose type may have changed. */
function renderValue(field: Field, raw: string): string {
  if (field.multiple) return renderValues(field, raw);
  if (field.type === "json") return compact(raw);
  return fits(field, raw) ? raw : "null";
}

/** Only text, select, media and relation can be `multiple`. Their elements are strings, so none has to be compacted. */
function renderValues(field: Field, raw: string): string {
  if (!raw.startsWith("[")) return "null";
  const elements = elementsOf(raw.slice(1, -1), "jsonb");
  return elements.every((element) => fits(field, element)) ? `[${elements.join(",")}]` : "null";
}

/** JSON texts of stored values: a UUID, and a datetime from its hour on. */
const UUID = /^"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"$/;
const TIME = /^([01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}\+00:00"$/;

function fits(field: Field, raw: string): boolean {
  switch (field.type) {
    case "json":
      return true;
    case "number":
      return /^[-\d]/.test(raw);
    case "boolean":
      return raw === "true" || raw === "false";
    case "date":
      return raw.length === 12 && beginsWithDate(raw);
    case "datetime":
      return raw[11] === "T" && TIME.test(raw.slice(12)) && beginsWithDate(raw);
    case "relation":
      return UUID.test(raw);
    default:
      return raw.startsWith('"');
  }
}

function beginsWithDate(raw: string): boolean {
  return isDate(raw.slice(1, 11));
}
