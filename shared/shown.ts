/** Which properties of an entry an answer shows. `id` is always shown. Source: contract.md section 2. */
import { type ContentType, type Field, isTimestamp, summaryFields, TIMESTAMPS, type Timestamp } from "./catalog.ts";

export type Shown = { readonly fields: readonly Field[]; readonly timestamps: readonly Timestamp[] };

/** A single entry: everything. */
export function shownOfEntry(type: ContentType): Shown {
  return { fields: type.fields, timestamps: TIMESTAMPS };
}

const lists = new WeakMap<ContentType, Shown>();

/** A list item: everything but rich text. The same object for the same type: what is made for it is kept with it. */
export function shownOfList(type: ContentType): Shown {
  const known = lists.get(type);
  if (known !== undefined) return known;
  const shown = { fields: type.fields.filter((field) => field.type !== "rich_text"), timestamps: TIMESTAMPS };
  lists.set(type, shown);
  return shown;
}

/** A search item: the summary and when it was published. */
export function shownOfSearch(type: ContentType): Shown {
  return { fields: summaryFields(type), timestamps: ["published_at"] };
}

/** What `fields` names, in the type's order. Names that are unknown are dropped. */
export function shownOfNames(type: ContentType, names: readonly string[]): Shown {
  return {
    fields: type.fields.filter((field) => names.includes(field.name)),
    timestamps: names.some(isTimestamp) ? TIMESTAMPS.filter((name) => names.includes(name)) : [],
  };
}

export function showsRichText(shown: Shown): boolean {
  return shown.fields.some((field) => field.type === "rich_text");
}
