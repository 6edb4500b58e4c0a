/** Renders an entry, a list item or a search item as JSON text. Source: shared/contract.md section 2. */
import type { Row } from "../sql/query.ts";
import { type App, type Column, type Field, oncePerObject } from "./catalog.ts";
import type { Shown } from "./columns.ts";
import { compact, compareMembers, pickMembers, readElements } from "./json.ts";
import { isDate } from "./value.ts";

/** Related entries as JSON text, by the relation field whose value they replace. A null value stays null. */
export type Populated = ReadonlyMap<string, string>;

const NOTHING: Populated = new Map();

/**
 * An entry as JSON text, with the keys of `shown` in the type's order. Uses `join` instead of `+`: a build keeps many
 * items in memory, and a string made with `+` keeps its parts alive.
 */
export function renderEntry(app: App, shown: Shown, row: EntryRow, populated = NOTHING): string {
  const { fields, timestamps } = shown;
  const values = columnValues(fields, row);
  const keys = writeKeys(fields);
  const parts = ['{"id":"', row.id, '"'];
  for (let index = 0; index < fields.length; index++) {
    const field = fields[index] as Field;
    const value = values[index] as string;
    parts.push(keys[index] as string, value === "null" ? value : (populated.get(field.name) ?? value));
    if (field.type === "media") parts.push(',"', field.name, '_url":', mediaUrl(app, value));
  }
  for (const name of timestamps) parts.push(',"', name, '":"', row[name], '"');
  parts.push("}");
  return parts.join("");
}

/** The text in front of the value of each field: a comma and the key. */
const writeKeys = oncePerObject((fields: readonly Field[]): readonly string[] =>
  fields.map(({ name }) => `,"${name}":`),
);

/**
 * URLs of a media value as JSON text: `{media_base_url}/<APP_KEY>/cms/media/<file name>`, an array or `null`. An empty
 * name, which exports write for "no image", has no URL.
 */
function mediaUrl(app: App, value: string): string {
  const names = JSON.parse(value) as string | string[] | null;
  const base = mediaFolder(app);
  const address = (name: string | null) => (name ? base + encodeURIComponent(name) : null);
  return JSON.stringify(Array.isArray(names) ? names.map(address) : address(names));
}

/** What the addresses of an app's media begin with. */
export function mediaFolder({ key, media_base_url }: Pick<App, "key" | "media_base_url">): string {
  return `${media_base_url.replace(/(?<!\/)\/+$/, "")}/${key}/cms/media/`;
}

// Reads an entry from a database row and renders its values as JSON texts. Source: shared/contract.md section 2.

/**
 * An entry that entryColumns (sql/columns.ts) has selected. `data` and `rich` (rich text only) are texts of jsonb objects
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
 * Reads the entries of a page (pageQuery in sql/page.ts): a line for each, with tabs between the columns. No value
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
  const { data, rich } = planLayout(columns);
  const values = columns.map((column) => (column.type === "timestamp" ? `"${row[column.name]}"` : "null"));
  fill(values, columns, data, row.data);
  if (row.rich !== null && rich.names.length > 0) fill(values, columns, rich, row.rich);
  return values;
}

/** Names of columns in the order in which jsonb stores object members, and for each its index in `columns`. */
type Placed = { readonly names: readonly string[]; readonly places: readonly number[] };
type Layout = { readonly data: Placed; readonly rich: Placed };

/** Remembered, because most requests to a type show the same columns. */
const planLayout = oncePerObject(
  (columns: readonly Column[]): Layout => ({
    data: placeColumns(columns, ({ type }) => type !== "rich_text" && type !== "timestamp"),
    rich: placeColumns(columns, ({ type }) => type === "rich_text"),
  }),
);

function placeColumns(columns: readonly Column[], isIncluded: (column: Column) => boolean): Placed {
  const names = columns.filter(isIncluded).map(({ name }) => name);
  names.sort(compareMembers);
  return { names, places: names.map((name) => columns.findIndex((column) => column.name === name)) };
}

function fill(values: string[], columns: readonly Column[], { names, places }: Placed, object: string): void {
  for (const [index, jsonText] of pickMembers(object, names).entries()) {
    const place = places[index] as number;
    if (jsonText !== undefined) values[place] = renderValue(columns[place] as Field, jsonText);
  }
}

/** The stored value as JSON text; `null` when it no longer fits the field, whose type may have changed. */
function renderValue(field: Field, jsonText: string): string {
  if (field.multiple) return renderValues(field, jsonText);
  if (field.type === "json") return compact(jsonText);
  return fits(field, jsonText) ? jsonText : "null";
}

/** Only text, select, media and relation can be `multiple`. Their elements are strings, so none has to be compacted. */
function renderValues(field: Field, jsonText: string): string {
  if (!jsonText.startsWith("[")) return "null";
  const elements = readElements(jsonText.slice(1, -1), "jsonb");
  return elements.every((element) => fits(field, element)) ? `[${elements.join(",")}]` : "null";
}

/** JSON texts of stored values: a UUID, and a datetime from its hour on. */
const UUID = /^"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"$/;
const TIME = /^([01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}\+00:00"$/;

function fits(field: Field, jsonText: string): boolean {
  switch (field.type) {
    case "json":
      return true;
    case "number":
      return /^[-\d]/.test(jsonText);
    case "boolean":
      return jsonText === "true" || jsonText === "false";
    case "date":
      return jsonText.length === 12 && beginsWithDate(jsonText);
    case "datetime":
      return jsonText[11] === "T" && TIME.test(jsonText.slice(12)) && beginsWithDate(jsonText);
    case "relation":
      return UUID.test(jsonText);
    default:
      return jsonText.startsWith('"');
  }
}

function beginsWithDate(jsonText: string): boolean {
  return isDate(jsonText.slice(1, 11));
}

// Determines the facets of an entry: the values by which equality filters find it, in canonical spelling. They are
// read from the entry as answers show it, so the database and the tree give the same facets. Source: shared/contract.md
// section 8.

/** `raw` is the value's JSON text in an answer. No value and an empty text have no facet: no filter can name them. */
export function findFacets(column: Column, jsonText: string | undefined): string[] {
  if (jsonText === undefined || jsonText === "null") return [];
  if (column.multiple) return [...new Set((JSON.parse(jsonText) as unknown[]).filter(isText))];
  if (column.type === "number") return [spellNumber(jsonText)];
  if (column.type === "boolean") return [jsonText];
  return [JSON.parse(jsonText)].filter(isText);
}

/** The canonical spelling of a number, as in filters and file names; `text` may have more digits than a double. */
export function spellNumber(text: string): string {
  return String(Number(text));
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}
