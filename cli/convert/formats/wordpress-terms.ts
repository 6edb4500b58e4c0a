/** Reads authors, categories, tags and the terms of other taxonomies of a WordPress export, each of them once. */
import type { Losses } from "../losses.ts";
import type { Place, SourceRecord, SourceValue } from "../record.ts";
import { type Element, read } from "./wordpress-xml.ts";

/** What records refer to before or after they are read: found by a first pass over all files. */
export type Site = {
  /** The types of posts by their ids. */
  readonly types: ReadonlyMap<string, string>;
  /** The addresses of attachments by their ids. */
  readonly addresses: ReadonlyMap<string, string>;
  /** The authors and terms that stand before the posts. A site that is exported in parts declares only some of them. */
  readonly declared: ReadonlySet<string>;
};
export type Reading = Site & { readonly losses: Losses; readonly seen: Set<string> };
export type Fields = Record<string, SourceValue>;

export const COLLECTIONS: Readonly<Record<string, string>> = {
  post: "posts",
  page: "pages",
  attachment: "attachments",
  category: "categories",
  post_tag: "tags",
};
export const INTERNAL_TAXONOMY = /^(?:nav_menu|link_category|wp_.*)$/;

export function* readAuthor(author: Element, reading: Reading): Generator<SourceRecord> {
  const login = read(author, "wp:author_login");
  if (read(author, "wp:author_email") !== "")
    reading.losses.count(author.place, "e-mail addresses of authors", "are personal, and everything here is public");
  const text = (name: string) => decodeEntities(read(author, `wp:author_${name}`)) || null;
  const name = text("display_name") ?? login;
  const fields = {
    name,
    first_name: text("first_name"),
    last_name: text("last_name"),
    description: text("description"),
  };
  yield* makeAuthor(login, fields, author.place, reading);
}

export function* makeAuthor(login: string, fields: Fields, place: Place, reading: Reading): Generator<SourceRecord> {
  // A login that is an e-mail address is personal.
  const slug = login.includes("@") ? null : login;
  if (isNew(`authors ${login}`, reading)) yield makeUndated("authors", login, { ...fields, slug }, place);
}

type Term = { readonly collection: string; readonly key: string; readonly parent: string; readonly fields: Fields };

/** A category, a tag, or a term of a taxonomy of the site's own; null for any other element. */
export function findTerm(element: Element): Term | null {
  const prefix = { "wp:category": "wp:category_", "wp:tag": "wp:tag_", "wp:term": "wp:term_" }[element.name];
  if (prefix === undefined) return null;
  const taxonomy = read(element, "wp:term_taxonomy") || (element.name === "wp:tag" ? "post_tag" : "category");
  if (INTERNAL_TAXONOMY.test(taxonomy) || taxonomy === "post_format") return null;
  return {
    collection: COLLECTIONS[taxonomy] ?? taxonomy,
    key: read(element, element.name === "wp:category" ? "wp:category_nicename" : `${prefix}slug`),
    parent: read(element, `${prefix}parent`),
    fields: {
      name: decodeEntities(read(element, element.name === "wp:category" ? "wp:cat_name" : `${prefix}name`)),
      description: read(element, `${prefix}description`) || null,
    },
  };
}

export function* readTerm(element: Element, reading: Reading): Generator<SourceRecord> {
  const term = findTerm(element);
  if (term === null) return;
  const { collection, key, fields } = term;
  if (term.parent !== "") fields.parent = { kind: "reference", collection, key: term.parent };
  yield* makeTerm(collection, key, fields, element.place, reading);
}

export function* makeTerm(
  collection: string,
  key: string,
  { name = null, ...fields }: Fields,
  place: Place,
  reading: Reading,
): Generator<SourceRecord> {
  if (isNew(`${collection} ${key}`, reading))
    yield makeUndated(collection, key, { name, slug: decodeSlug(key), ...fields }, place);
}

/** Authors and terms have no dates, and no status: they are seen as soon as they exist. */
function makeUndated(collection: string, key: string, fields: Fields, place: Place): SourceRecord {
  const dates = { published: null, created: null, updated: null };
  return { kind: "record", collection, key, place, status: "published", ...dates, fields };
}

export function isNew(name: string, { seen }: Reading): boolean {
  return seen.size < seen.add(name).size;
}

/** WordPress keeps letters beyond ASCII percent-encoded, cut off at 200 bytes. */
export function decodeSlug(slug: string): string | null {
  try {
    return slug === "" ? null : decodeURIComponent(slug);
  } catch {
    return slug;
  }
}

/** Names are HTML in WordPress's database. */
export function decodeEntities(text: string): string {
  const characters: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', "#039": "'" };
  return text.replace(/&(amp|lt|gt|quot|#039);/g, (_entity, name: string) => characters[name] as string);
}
