/**
 * The facets of an entry: the values by which filters find it, in canonical spelling. Read from the entry as an answer
 * shows it, so an entry of the database and one of the tree are read alike. Source: contract.md section 8.
 */
import type { Column } from "./catalog.ts";

/** `raw` is the value's JSON text in an answer. What no filter can ask for (no value, an empty text) is no facet. */
export function facetsOf(column: Column, raw: string | undefined): string[] {
  if (raw === undefined || raw === "null") return [];
  if (column.multiple) return [...new Set((JSON.parse(raw) as unknown[]).filter(isText))];
  if (column.type === "number") return [spellNumber(raw)];
  if (column.type === "boolean") return [raw];
  return [JSON.parse(raw)].filter(isText);
}

/** A number as filters and files spell it, however many digits it was stored with. */
export function spellNumber(text: string): string {
  return String(Number(text));
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}
