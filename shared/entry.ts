/** Renders a row of the database as an entry, a list item or a search item: JSON text. Source: contract.md section 2. */
import type { App, Column, Field } from "./catalog.ts";
import type { Row } from "./database/database.ts";
import { compact, elementsOf, membersOf } from "./raw.ts";
import type { Shown } from "./shown.ts";
import { isDate } from "./value.ts";

/** What sql/column.ts's entryColumns selects: values as raw JSON text by field, timestamps as answers spell them. */
export type EntryRow = {
  readonly id: string;
  readonly data: ReadonlyMap<string, string>;
  /** Empty where the query left it out. */
  readonly rich: ReadonlyMap<string, string>;
  readonly published_at: string;
  readonly created_at: string;
  readonly updated_at: string;
};

/** Values that stand in for a field's own, by field name, as JSON text: related entries. */
export type Populated = ReadonlyMap<string, string>;

const NOTHING: Populated = new Map();

/** Reads the columns of an entry that begin at `offset`; null where an outer join found none. */
export function readEntryRow(row: Row, offset: number): EntryRow | null {
  const [id, data, rich, published_at, created_at, updated_at] = row.slice(offset);
  if (id == null || data == null || published_at == null || created_at == null || updated_at == null) return null;
  return {
    id,
    data: membersOf(data),
    rich: rich == null ? NOTHING : membersOf(rich),
    published_at,
    created_at,
    updated_at,
  };
}

/**
 * An entry as JSON text, with the keys of `shown` in the type's order. Joined and not added up: a build keeps many items,
 * and a text that was added up keeps its pieces.
 */
export function renderEntry(app: App, shown: Shown, row: EntryRow, populated = NOTHING): string {
  const parts = ['{"id":"', row.id, '"'];
  for (const field of shown.fields) {
    const value = valueIn(field, row);
    parts.push(',"', field.name, '":', populated.get(field.name) ?? value);
    if (field.type === "media") parts.push(',"', field.name, '_url":', mediaUrl(app, value));
  }
  for (const name of shown.timestamps) parts.push(',"', name, '":"', row[name], '"');
  parts.push("}");
  return parts.join("");
}

/** The value of a column as an answer shows it, as JSON text. */
export function valueIn(column: Column, row: EntryRow): string {
  if (column.type === "timestamp") return `"${row[column.name]}"`;
  return renderValue(column, (column.type === "rich_text" ? row.rich : row.data).get(column.name));
}

/** A value as it is stored; null where there is none or where it does not fit the field any more. */
function renderValue(field: Field, raw: string | undefined): string {
  if (raw === undefined) return "null";
  const value = raw.startsWith("[") || raw.startsWith("{") ? compact(raw) : raw;
  return (field.multiple ? fitsMany(field, value) : fits(field, value)) ? value : "null";
}

/** Text, select, media and relation are what can be `multiple`. */
function fitsMany(field: Field, value: string): boolean {
  return value.startsWith("[") && elementsOf(value.slice(1, -1)).every((element) => fits(field, element));
}

/** As they are stored. */
const UUID = /^"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"$/;
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
      return raw.length === 12 && isDay(raw);
    case "datetime":
      return raw[11] === "T" && TIME.test(raw.slice(12)) && isDay(raw);
    case "relation":
      return UUID.test(raw);
    default:
      return raw.startsWith('"');
  }
}

/** Does the text begin with a day that exists, in a year that answers can spell? */
function isDay(raw: string): boolean {
  return raw >= '"0001' && isDate(raw.slice(1, 11));
}

/** The address of a media value: `{media_base_url}/<APP_KEY>/cms/media/<file name>`. */
function mediaUrl(app: App, value: string): string {
  const names = JSON.parse(value) as string | string[] | null;
  const base = `${app.media_base_url.replace(/\/+$/, "")}/${app.key}/cms/media/`;
  const address = (name: string) => base + encodeURIComponent(name);
  if (names === null) return "null";
  return JSON.stringify(Array.isArray(names) ? names.map(address) : address(names));
}
