/**
 * The views in which answers show the entries of a content type, and the names that they have in generated code: unique
 * in the whole file, and legal in every language.
 */
import type { App, ContentType, Field } from "../../shared/api/catalog.ts";
import { type Shown, shownOfEntry, shownOfList, shownOfSearch } from "../../shared/api/columns.ts";

/** What each content type has: an item of a list, one of a search, an entry, and an entry with its relations populated. */
export const VIEWS = ["Item", "SearchItem", "Entry", "Populated"] as const;
export type View = (typeof VIEWS)[number];

/** A content type with the beginning of its names: `BlogPosts` for `blog-posts`. */
export type NamedType = { readonly type: ContentType; readonly name: string };

/** Names of the file itself, which no content type may take. */
export const OWN_NAMES = ["Meta", "SearchMeta", "Catalog", "Schema", "ApiError"] as const;

export type NamedApp = { readonly app: App; readonly name: string; readonly types: readonly NamedType[] };

/** In catalog order. Of two slugs that would get the same name, the second gets a number. */
export function nameTypes(app: App): NamedApp {
  const name = toPascalCase(app.key);
  const used = new Set<string>([name, ...OWN_NAMES]);
  const types = app.types.map((type) => {
    const base = toPascalCase(type.slug);
    for (let number = 1; ; number++) {
      const candidate = number === 1 ? base : `${base}${number}`;
      const names = VIEWS.flatMap((view) => [candidate + view, `${candidate}${view}Answer`]);
      if (names.some((one) => used.has(one))) continue;
      for (const one of names) used.add(one);
      return { type, name: candidate };
    }
  });
  return { app, name, types };
}

/** A name that begins with a digit gets a letter before it. */
function toPascalCase(text: string): string {
  const words = text.split(/[^A-Za-z0-9]+/).filter((word) => word !== "");
  const name = words.map((word) => word[0]?.toUpperCase() + word.slice(1)).join("");
  return /^[A-Za-z]/.test(name) ? name : `T${name}`;
}

/** The properties that a view shows, besides `id`. */
export function shownIn(type: ContentType, view: View): Shown {
  if (view === "Item") return shownOfList(type);
  return view === "SearchItem" ? shownOfSearch(type) : shownOfEntry(type);
}

/** The type that a relation leads to; undefined when it is not published: then nothing is ever populated. */
export function findTarget({ types }: NamedApp, field: Field): NamedType | undefined {
  return field.type === "relation" ? types.find(({ type }) => type.slug === field.target) : undefined;
}

/** The values of select fields, by the slug of the type and the name of the field. */
export type SelectValues = ReadonlyMap<string, ReadonlyMap<string, readonly string[]>>;

export const NO_VALUES: SelectValues = new Map();
