/** Determines which properties of an entry an answer shows. `id` is always shown. Source: contract.md section 2. */
import { type ContentType, type Field, summaryFields, TIMESTAMPS, type Timestamp } from "./catalog.ts";
import { oncePerObject } from "./per-object.ts";

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
