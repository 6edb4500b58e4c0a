/** Determines which properties of an entry an answer shows. `id` is always shown. Source: contract.md section 2. */
import {
  type Column,
  type ContentType,
  type Field,
  findColumn,
  isSortable,
  oncePerObject,
  summaryFields,
  TIMESTAMPS,
  type Timestamp,
} from "./catalog.ts";
import { MAX_SORT_LENGTH } from "./errors.ts";
import { countCharacters } from "./value.ts";

export type Shown = { readonly fields: readonly Field[]; readonly timestamps: readonly Timestamp[] };

/** A single entry: everything. */
export function shownOfEntry(type: ContentType): Shown {
  return { fields: type.fields, timestamps: TIMESTAMPS };
}

/** A list item: everything but rich text. Always the same object for a type, so that caches can be keyed by it. */
export const shownOfList = oncePerObject(
  (type: ContentType): Shown => ({
    fields: type.fields.filter((field) => field.type !== "rich_text"),
    timestamps: TIMESTAMPS,
  }),
);

/** A search item: the summary fields and `published_at`. */
export function shownOfSearch(type: ContentType): Shown {
  return { fields: summaryFields(type), timestamps: ["published_at"] };
}

/** The properties that the parameter `fields` names, in the type's order. Unknown names are dropped. */
export function shownOfNames(type: ContentType, names: readonly string[]): Shown {
  return {
    fields: type.fields.filter((field) => names.includes(field.name)),
    timestamps: TIMESTAMPS.filter((name) => names.includes(name)),
  };
}

export function showsRichText(shown: Shown): boolean {
  return shown.fields.some((field) => field.type === "rich_text");
}

// Reads the parameter `sort`: one column and a direction. Source: shared/contract.md sections 3 and 4.

export type Sort = { readonly column: Column; readonly descending: boolean };

const NEWEST: Sort = { column: { name: "published_at", type: "timestamp", multiple: false }, descending: true };

/** Reads the `sort` of a request; null when it is too long or names no sortable field. */
export function readSort(type: ContentType, text: string): Sort | null {
  if (countCharacters(text) > MAX_SORT_LENGTH || !isSortable(type, readField(text))) return null;
  return sortBy(type, text);
}

/** The order of a list without `sort`: the type's default, else newest first. */
export function defaultSort(type: ContentType): Sort {
  return (type.default_sort === null ? null : sortBy(type, type.default_sort)) ?? NEWEST;
}

/** Without a prefix the timestamps sort newest first and everything else ascends; `-` always descends. */
function sortBy(type: ContentType, text: string): Sort | null {
  const column = findColumn(type, readField(text));
  return column === undefined ? null : { column, descending: text.startsWith("-") || column.type === "timestamp" };
}

export function readField(text: string): string {
  return text.startsWith("-") ? text.slice(1) : text;
}
