/**
 * The model's content: bundles as `import` reads them, and what a reader may see of them.
 *
 * Lookups scan arrays instead of using keys of objects: a content type may be called `constructor`.
 */
import type { FieldType } from "../../shared/api/catalog.ts";
import { instantOf, timestampText } from "./model-value.ts";

export type BundleField = {
  name: string;
  type: FieldType;
  label: string;
  required: boolean;
  searchable: boolean;
  multiple?: boolean;
  target?: string;
};

/** As in `content_types/<slug>.json`. */
export type BundleType = {
  slug: string;
  name: string;
  description: string;
  icon: string;
  position?: number;
  published?: boolean;
  default_sort?: string;
  per_page?: number;
  summary_fields?: string[];
  fields: BundleField[];
  filterable_fields: string[];
  sortable_fields: string[];
};

/** As a line of `entries/<slug>.ndjson`. */
export type BundleEntry = {
  id: string;
  status: "draft" | "published";
  published_at: string | null;
  created_at: string;
  updated_at: string;
  data: Record<string, unknown>;
};

export type Bundle = {
  app: { key: string; name: string; media_base_url?: string };
  types: BundleType[];
  entries: Record<string, BundleEntry[]>;
};

export const TIMESTAMP_NAMES = ["published_at", "created_at", "updated_at"] as const;
export type TimestampName = (typeof TIMESTAMP_NAMES)[number];

/** What a condition or a sort looks at: a declared field or a timestamp column. */
export type ModelColumn = { name: string; type: FieldType | "timestamp"; multiple: boolean };

export function isTimestampName(name: string): name is TimestampName {
  return (TIMESTAMP_NAMES as readonly string[]).includes(name);
}

export function findBundleType(bundle: Bundle, slug: string): BundleType | undefined {
  return bundle.types.find((type) => type.slug === slug && type.published !== false);
}

export function findColumn(type: BundleType, name: string): ModelColumn | undefined {
  if (isTimestampName(name)) return { name, type: "timestamp", multiple: false };
  const field = type.fields.find((one) => one.name === name);
  return field && { name, type: field.type, multiple: field.multiple === true };
}

export function publishedEntries(bundle: Bundle, type: BundleType): BundleEntry[] {
  const all = Object.entries(bundle.entries).find(([slug]) => slug === type.slug)?.[1] ?? [];
  return all.filter((entry) => entry.status === "published");
}

export function entryId(entry: BundleEntry): string {
  return entry.id.toLowerCase();
}

/** A field's value as JSON shows it without `populate`; `null` where it has none. */
export function fieldValue(entry: BundleEntry, column: ModelColumn): unknown {
  if (isTimestampName(column.name)) return normalTimestamp(entry[column.name]);
  const raw = Object.hasOwn(entry.data, column.name) ? entry.data[column.name] : null;
  if (Array.isArray(raw) && column.multiple) return raw.map((one) => normal(column, one));
  return raw === null ? null : normal(column, raw);
}

/** The values that a condition is compared with: none for `null` and for an empty array. */
export function fieldValues(entry: BundleEntry, column: ModelColumn): unknown[] {
  const value = fieldValue(entry, column);
  if (value === null) return [];
  return column.multiple ? (value as unknown[]) : [value];
}

function normal(column: ModelColumn, value: unknown): unknown {
  if (column.type === "relation") return String(value).toLowerCase();
  if (column.type === "datetime") return normalTimestamp(String(value));
  return value;
}

function normalTimestamp(text: string | null): string | null {
  return text === null ? null : timestampText(instantOf(text) ?? Number.NaN);
}
