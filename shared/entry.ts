/** Renders an entry, a list item or a search item: JSON text. Source: contract.md section 2. */
import type { App } from "./catalog.ts";
import { columnValues, type EntryRow } from "./entry-row.ts";
import type { Shown } from "./shown.ts";

/** Values that stand in for a field's own, where it has one, by field name, as JSON text: related entries. */
export type Populated = ReadonlyMap<string, string>;

const NOTHING: Populated = new Map();

/**
 * An entry as JSON text, with the keys of `shown` in the type's order. Joined and not added up: a build keeps many items,
 * and a text that was added up keeps its pieces.
 */
export function renderEntry(app: App, shown: Shown, row: EntryRow, populated = NOTHING): string {
  const values = columnValues(shown.fields, row);
  const parts = ['{"id":"', row.id, '"'];
  for (const [index, field] of shown.fields.entries()) {
    const value = values[index] as string;
    parts.push(',"', field.name, '":', value === "null" ? value : (populated.get(field.name) ?? value));
    if (field.type === "media") parts.push(',"', field.name, '_url":', mediaUrl(app, value));
  }
  for (const name of shown.timestamps) parts.push(',"', name, '":"', row[name], '"');
  parts.push("}");
  return parts.join("");
}

/** The address of a media value: `{media_base_url}/<APP_KEY>/cms/media/<file name>`. */
function mediaUrl(app: App, value: string): string {
  const names = JSON.parse(value) as string | string[] | null;
  const base = `${app.media_base_url.replace(/\/+$/, "")}/${app.key}/cms/media/`;
  const address = (name: string) => base + encodeURIComponent(name);
  if (names === null) return "null";
  return JSON.stringify(Array.isArray(names) ? names.map(address) : address(names));
}
