/** Tells by name and type what the value of a column is in a content type. */
import type { FieldType } from "../../shared/api/catalog.ts";
import type { Column } from "./catalog.ts";

export type Kind = {
  readonly type: FieldType;
  readonly multiple: boolean;
  /** The slug of the type that a relation leads to. */
  readonly target?: string;
  /** Writes the SQL of the value where it is not that of the column. */
  readonly write?: (column: string) => string;
};

/** Columns of these names are never adopted without being asked for. */
export const SECRET = /(^|_)(passw(or)?d|secret|token|salt|hash|api_?key|private_?key|otp)s?(_|$)|password|apikey/i;

const HTML = /^(body|content|html|text_?html)$|_?html$/i;
const TITLE = /^(title|name|headline|heading|label)$|_(title|name)$/;
/** What people do not search for by words. */
const CODE = /(^|_)(slug|url|uri|link|path|email|phone|code|key|uuid|id|sku|hash|color|colour|locale|language)$/;

/** Null for a type whose values no JSON holds. */
export function describeColumn({ name, base, category, isArray }: Column): Kind | null {
  const asText = (column: string) => `${column}::text`;
  if (["bytea", "tsvector", "tsquery"].includes(base)) return null;
  if (isArray) {
    if (category === "E") return { type: "select", multiple: true };
    return category === "S" || base === "uuid" ? { type: "text", multiple: true } : { type: "json", multiple: false };
  }
  if (base === "bpchar") return { type: "text", multiple: false, write: asText };
  if (category === "S") return { type: HTML.test(name) ? "rich_text" : "text", multiple: false };
  if (base === "money") return { type: "number", multiple: false, write: (column) => `${column}::numeric` };
  const type = TYPES[base] ?? TYPES[category];
  return type === undefined
    ? { type: "text", multiple: false, write: asText }
    : { type, multiple: false, ...(base === "uuid" ? { write: asText } : {}) };
}

/** By the name of the type in the catalog, or by its category. */
const TYPES: Readonly<Record<string, FieldType>> = {
  date: "date",
  timestamp: "datetime",
  timestamptz: "datetime",
  json: "json",
  jsonb: "json",
  uuid: "text",
  N: "number",
  B: "boolean",
  E: "select",
};

export function isInstant({ base, isArray }: Column): boolean {
  return !isArray && ["date", "timestamp", "timestamptz"].includes(base);
}

export function isTitle(name: string): boolean {
  return TITLE.test(name);
}

export function isSearchable(name: string, type: FieldType): boolean {
  return type === "rich_text" || (type === "text" && !CODE.test(name));
}
