/**
 * How the model writes content types and entries as JSON values, keys in the contract's order.
 * Source: shared/contract.md sections 2 and 4.
 */

import type { Bundle, BundleEntry, BundleField, BundleType } from "./model-bundle.ts";
import { entryId, fieldValue, findBundleType, findColumn, publishedEntries, TIMESTAMP_NAMES } from "./model-bundle.ts";

export type Json = Record<string, unknown>;

/** An app's bundle and its media base URL: the app's own, or else the server's. */
export type Owner = { bundle: Bundle; mediaBaseUrl: string };

export function catalogItem(bundle: Bundle, type: BundleType): Json {
  return {
    ...names(type),
    entry_count: publishedEntries(bundle, type).length,
    fields: type.fields.map((field) => field.name),
    ...lists(type),
  };
}

export function schemaOf(type: BundleType): Json {
  const fields = type.fields.map((field) => ({
    name: field.name,
    type: field.type,
    required: field.required,
    label: field.label,
    searchable: field.searchable,
  }));
  return { ...names(type), fields, ...lists(type) };
}

function names({ slug, name, description, icon }: BundleType): Json {
  return { slug, name, description, icon };
}

function lists(type: BundleType): Json {
  return {
    filterable_fields: type.filterable_fields,
    sortable_fields: type.sortable_fields,
    searchable_fields: type.fields.filter((field) => field.searchable).map((field) => field.name),
  };
}

/** By position, those without one last, then by slug in byte order. */
export function catalogOrder(types: readonly BundleType[]): BundleType[] {
  const position = (type: BundleType) => type.position ?? Number.MAX_SAFE_INTEGER;
  return [...types].sort((a, b) => position(a) - position(b) || (a.slug < b.slug ? -1 : 1));
}

/** An entry with those fields and timestamps that are `wanted`; `id` always. */
export function renderEntry(
  owner: Owner,
  type: BundleType,
  entry: BundleEntry,
  wanted: (name: string) => boolean,
): Json {
  const shown: Json = { id: entryId(entry) };
  for (const field of type.fields.filter((one) => wanted(one.name))) {
    const column = findColumn(type, field.name);
    const value = column ? fieldValue(entry, column) : null;
    shown[field.name] = value;
    if (field.type === "media") shown[`${field.name}_url`] = mediaUrl(owner, value);
  }
  for (const name of TIMESTAMP_NAMES.filter(wanted)) {
    shown[name] = fieldValue(entry, { name, type: "timestamp", multiple: false });
  }
  return shown;
}

function mediaUrl(owner: Owner, value: unknown): unknown {
  if (value === null || value === "") return null;
  if (Array.isArray(value)) return value.map((one) => mediaUrl(owner, one));
  const base = owner.mediaBaseUrl.replace(/\/+$/, "");
  return `${base}/${owner.bundle.app.key}/cms/media/${encodeURIComponent(String(value))}`;
}

/** What a list or search shows when the request has `fields`; otherwise see `usualListItem` and `usualSearchItem`. */
export function namedIn(fields: string): (name: string) => boolean {
  const named = fields.split(",").map((name) => name.trim());
  return (name) => named.includes(name);
}

export function usualListItem(type: BundleType): (name: string) => boolean {
  const rich = type.fields.filter((field) => field.type === "rich_text").map((field) => field.name);
  return (name) => !rich.includes(name);
}

export function usualSearchItem(type: BundleType): (name: string) => boolean {
  const summary = type.summary_fields ?? usualSummary(type);
  return (name) => summary.includes(name) || name === "published_at";
}

/** `title`, `slug`, `category`; the first text field in place of a missing title. */
function usualSummary(type: BundleType): string[] {
  const hasTitle = type.fields.some((field) => field.name === "title");
  const title = hasTitle ? "title" : type.fields.find((field) => field.type === "text")?.name;
  return ["slug", "category", ...(title === undefined ? [] : [title])];
}

/** A single entry, with related entries in place of their UUIDs in the relations that `populate` names. */
export function renderSingle(owner: Owner, type: BundleType, entry: BundleEntry, populate: string): Json {
  const single = renderEntry(owner, type, entry, () => true);
  const isNamed = namedIn(populate);
  for (const field of type.fields.filter((one) => one.type === "relation" && isNamed(one.name))) {
    single[field.name] = populated(owner, field, single[field.name]);
  }
  return single;
}

function populated(owner: Owner, field: BundleField, value: unknown): unknown {
  if (value === null) return null;
  if (!Array.isArray(value)) return related(owner, field, String(value));
  return value.map((id) => related(owner, field, String(id))).filter((one) => one !== null);
}

/** The related entry; `null` unless it is a published entry of the field's target type, itself published. */
function related(owner: Owner, field: BundleField, id: string): Json | null {
  const type = findBundleType(owner.bundle, field.target ?? "");
  const entry = type && publishedEntries(owner.bundle, type).find((one) => entryId(one) === id);
  return type && entry ? renderEntry(owner, type, entry, () => true) : null;
}
