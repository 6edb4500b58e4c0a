/**
 * Determines the facets of an entry: the values by which equality filters find it, in canonical spelling. They are read
 * from the entry as answers show it, so the database and the tree give the same facets. Source: contract.md section 8.
 */
import type { Column } from "./catalog.ts";

/** `raw` is the value's JSON text in an answer. No value and an empty text have no facet: no filter can name them. */
export function facetsOf(column: Column, raw: string | undefined): string[] {
  if (raw === undefined || raw === "null") return [];
  if (column.multiple) return [...new Set((JSON.parse(raw) as unknown[]).filter(isText))];
  if (column.type === "number") return [spellNumber(raw)];
  if (column.type === "boolean") return [raw];
  return [JSON.parse(raw)].filter(isText);
}

/** The canonical spelling of a number, as in filters and file names; `text` may have more digits than a double. */
export function spellNumber(text: string): string {
  return String(Number(text));
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}
