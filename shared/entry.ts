/** Renders an entry, a list item or a search item as JSON text. Source: contract.md section 2. */
import type { App, Field } from "./catalog.ts";
import { columnValues, type EntryRow } from "./entry-row.ts";
import { oncePerObject } from "./per-object.ts";
import type { Shown } from "./shown.ts";

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
  const keys = keysOf(fields);
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
const keysOf = oncePerObject((fields: readonly Field[]): readonly string[] => fields.map(({ name }) => `,"${name}":`));

/** URLs of a media value as JSON text: `{media_base_url}/<APP_KEY>/cms/media/<file name>`, an array or `null`. */
function mediaUrl(app: App, value: string): string {
  const names = JSON.parse(value) as string | string[] | null;
  const base = `${app.media_base_url.replace(/(?<!\/)\/+$/, "")}/${app.key}/cms/media/`;
  const address = (name: string) => base + encodeURIComponent(name);
  if (names === null) return "null";
  return JSON.stringify(Array.isArray(names) ? names.map(address) : address(names));
}
