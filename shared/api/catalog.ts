/**
 * Defines apps, content types and fields, their limits, and the questions that other files ask about them.
 * Source: shared/contract.md section 2.
 */

export const FIELD_TYPES = [
  "text",
  "rich_text",
  "select",
  "media",
  "relation",
  "number",
  "boolean",
  "date",
  "datetime",
  "json",
] as const;
export type FieldType = (typeof FIELD_TYPES)[number];

export const TIMESTAMPS = ["published_at", "created_at", "updated_at"] as const;
export type Timestamp = (typeof TIMESTAMPS)[number];

/** A declared field of a content type. `target` is the slug of the related type, for `relation` only, else null. */
export type Field = {
  readonly name: string;
  readonly type: FieldType;
  readonly label: string;
  readonly required: boolean;
  readonly searchable: boolean;
  readonly multiple: boolean;
  readonly target: string | null;
};

export type ContentType = {
  readonly slug: string;
  readonly name: string;
  readonly description: string;
  readonly icon: string;
  /** Null places the type behind all types that have a position. */
  readonly position: number | null;
  /** In the syntax of the parameter `sort`, with or without `-`. Null means newest first. */
  readonly default_sort: string | null;
  /** Null means DEFAULT_PER_PAGE. */
  readonly per_page: number | null;
  /** Names of the fields that search items show. Null means the default of shared/contract.md section 2. */
  readonly summary_fields: readonly string[] | null;
  readonly filterable_fields: readonly string[];
  readonly sortable_fields: readonly string[];
  readonly fields: readonly Field[];
};

/** An app as clients see it: with its published content types only, in catalog order. */
export type App = {
  readonly key: string;
  readonly name: string;
  readonly media_base_url: string;
  readonly types: readonly ContentType[];
};

/** What a filter, a sort or `fields` can name: a declared field, or one of the timestamp columns of every entry. */
export type Column = Field | { readonly name: Timestamp; readonly type: "timestamp"; readonly multiple: false };

export const APP_KEY = /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/;
export const TYPE_SLUG = /^[a-z0-9][a-z0-9_-]{0,63}$/;
export const FIELD_NAME = /^[a-z][a-z0-9_]{0,62}$/;
export const RESERVED_NAMES: readonly string[] = ["id", "published_at", "created_at", "updated_at", "search"];

export const MULTIPLE_TYPES: readonly FieldType[] = ["select", "media", "relation", "text"];
export const SEARCHABLE_TYPES: readonly FieldType[] = ["text", "rich_text", "select"];
const OPAQUE_TYPES: readonly FieldType[] = ["rich_text", "json"];

/** Fields of a content type. `precast.check_once` has the same limit. */
export const MAX_FIELDS = 1_000;

export const DEFAULT_PER_PAGE = 20;
export const MAX_PER_PAGE = 100;

/** Where media are for apps that name no address: on the machine of whoever asks. */
export const LOCAL_MEDIA = "http://localhost:3000";

/** Whether an address leads to the machine of whoever opens it. */
export function isLocalAddress(address: string): boolean {
  const host = URL.canParse(address) ? new URL(address).hostname.replace(/\.$/, "") : "";
  return /^((.+\.)?localhost|127(\.\d+){3}|0\.0\.0\.0|\[::1?\]|\[::ffff:7f[0-9a-f]{2}:[0-9a-f]+\])$/.test(host);
}

/** Whether the addresses of media can be formed from it: file names are appended, so it has no `?` and no `#`. */
export function isMediaBaseUrl(address: string): boolean {
  return /^https?:\/\/[^/\s\p{Cc}?#][^\s\p{Cc}?#]*$/u.test(address) && URL.canParse(address);
}

export function isTimestamp(name: string): name is Timestamp {
  return (TIMESTAMPS as readonly string[]).includes(name);
}

/** May a type declare this field filterable? */
export function canFilter(field: Pick<Field, "type">): boolean {
  return !OPAQUE_TYPES.includes(field.type);
}

/** May a type declare this field sortable? */
export function canSort(field: Pick<Field, "type" | "multiple">): boolean {
  return canFilter(field) && field.type !== "relation" && !field.multiple;
}

export function findType(app: App, slug: string): ContentType | undefined {
  return app.types.find((type) => type.slug === slug);
}

export function findField(type: ContentType, name: string): Field | undefined {
  return type.fields.find((field) => field.name === name);
}

export function findColumn(type: ContentType, name: string): Column | undefined {
  return isTimestamp(name) ? { name, type: "timestamp", multiple: false } : findField(type, name);
}

export function isFilterable(type: ContentType, name: string): boolean {
  return type.filterable_fields.includes(name);
}

export function isSortable(type: ContentType, name: string): boolean {
  return isTimestamp(name) || type.sortable_fields.includes(name);
}

/** What `sort` can name. */
export function listSortable(type: ContentType): readonly string[] {
  return [...new Set([...type.sortable_fields, ...TIMESTAMPS])];
}

export function defaultPerPage(type: ContentType): number {
  return type.per_page ?? DEFAULT_PER_PAGE;
}

export function searchableFields(type: ContentType): readonly Field[] {
  return type.fields.filter((field) => field.searchable);
}

/** The fields that search items show between `id` and `published_at`, in the type's order (contract.md section 2). */
export function summaryFields(type: ContentType): readonly Field[] {
  const names = type.summary_fields ?? defaultSummary(type);
  return type.fields.filter((field) => names.includes(field.name));
}

function defaultSummary(type: ContentType): readonly string[] {
  const has = (name: string) => findField(type, name) !== undefined;
  const title = has("title") ? "title" : type.fields.find((field) => field.type === "text")?.name;
  return [title ?? "", ...["slug", "category"].filter(has)];
}

/** Catalog order: by position, those without one last, then by slug in byte order. */
export function compareTypes(a: ContentType, b: ContentType): number {
  const byPosition = (a.position ?? Number.POSITIVE_INFINITY) - (b.position ?? Number.POSITIVE_INFINITY);
  return byPosition || (a.slug < b.slug ? -1 : 1);
}

// Remembers what was computed from an object, for as long as the object is in use.

/** A function that computes once for each object, and then returns the same result again. */
export function oncePerObject<K extends object, V extends NonNullable<unknown>>(compute: (key: K) => V): (key: K) => V {
  const results = new WeakMap<K, V>();
  return (key) => {
    const known = results.get(key);
    if (known !== undefined) return known;
    const result = compute(key);
    results.set(key, result);
    return result;
  };
}
