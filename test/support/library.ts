/**
 * A small library written by hand: every field type, drafts, relations to missing entries, odd file names, ties, types
 * whose names have another meaning elsewhere. Small enough to work out expectations on paper.
 */
import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { importBundle } from "../../cli/commands/import.ts";
import type { FieldType } from "../../shared/api/catalog.ts";
import { writeBundle } from "./content.ts";
import type { Bundle, BundleEntry, BundleField, BundleType } from "./model-bundle.ts";
import type { Store } from "./site.ts";

export const LIBRARY_KEY = "Lib_1";
export const LIBRARY_MEDIA = `https://cdn.example.com/base/${LIBRARY_KEY}/cms/media/`;
/** A whole number that no double can hold: JavaScript would round it, so it is written into the bundle as text. */
export const EXACT_NUMBER = "9007199254740993";
const ROUNDED_NUMBER = 9007199254740992;

/** All types share these ids: `libraryId(1)` is an author and a work. */
export function libraryId(number: number): string {
  return `abcdef00-0000-4000-8000-${String(number).padStart(12, "0")}`;
}

/**
 * Imports the library, with the digits of EXACT_NUMBER that `JSON.stringify` cannot write. In a crowded one, other fields
 * fill all slots of works and texts (shared/schema/README.md), so that their own fields have none.
 */
export async function loadLibrary(store: Store, isCrowded = false): Promise<void> {
  const folder = await mkdtemp(join(store.folder, "library-"));
  const bundle = libraryBundle();
  const crowdedTypes = bundle.types.map((type) => (type === WORKS || type === TEXTS ? crowded(type) : type));
  await writeBundle(folder, isCrowded ? { ...bundle, types: crowdedTypes } : bundle);
  const file = join(folder, "entries", "works.ndjson");
  const lines = await readFile(file, "utf8");
  await writeFile(file, lines.replace(String(ROUNDED_NUMBER), EXACT_NUMBER));
  await importBundle(store.database, folder, { prune: true, dryRun: false });
}

function libraryBundle(): Bundle {
  return {
    // The trailing slash must not become a double slash in media URLs.
    app: { key: LIBRARY_KEY, name: "Library", media_base_url: "https://cdn.example.com/base/" },
    types: [WORKS, AUTHORS, TEXTS, SEARCH, CONSTRUCTOR, EMPTY, HIDDEN],
    entries: {
      works: WORK_ENTRIES,
      authors: AUTHOR_ENTRIES,
      texts: TEXT_ENTRIES,
      search: [entry(1, "2026-01-01T00:00:00Z", { label: "Lost keys", category: ["Found"], slug: "lost" })],
      constructor: [
        entry(1, "2026-01-01T00:00:00Z", { constructor: 2, sort: "b", page: true, filter: "x" }),
        entry(2, "2026-01-02T00:00:00Z", { constructor: 1, sort: "a", page: false, filter: "y" }),
      ],
      hidden: [entry(1, "2026-01-01T00:00:00Z", { title: "Nobody sees this" })],
    },
  };
}

/** Slots are given to sortable fields first, and among them in the order of the fields. */
function crowded(type: BundleType): BundleType {
  const crowd = (count: number, fieldType: FieldType, more: Partial<BundleField> = {}) =>
    Array.from({ length: count }, (_, index) => field(`${fieldType}_${index}`, fieldType, more));
  const sortable = [...crowd(8, "text"), ...crowd(6, "number")];
  const others = [...sortable, ...crowd(4, "select", { multiple: true })];
  const namesOf = (fields: readonly BundleField[]) => fields.map(({ name }) => name);
  return {
    ...type,
    fields: [...others, ...type.fields],
    filterable_fields: [...namesOf(others), ...type.filterable_fields],
    sortable_fields: [...namesOf(sortable), ...type.sortable_fields],
  };
}

export function field(name: string, type: FieldType, more: Partial<BundleField> = {}): BundleField {
  return { name, type, label: name, required: false, searchable: false, ...more };
}

/** A published entry, unless `more` says otherwise. */
export function entry(
  number: number,
  published_at: string,
  data: Record<string, unknown>,
  more: Partial<BundleEntry> = {},
): BundleEntry {
  const stamps = { published_at, created_at: "2025-01-01T00:00:00Z", updated_at: "2026-02-01T00:00:00Z" };
  return { id: libraryId(number), status: "published", ...stamps, data, ...more };
}

const WORKS: BundleType = {
  slug: "works",
  name: "Works",
  description: 'What we "keep".',
  icon: "book",
  position: 2,
  fields: [
    field("title", "text", { label: "Title", searchable: true }),
    field("slug", "text", { label: "Slug", required: true }),
    field("category", "select", { label: "Category", multiple: true, searchable: true }),
    field("genre", "select"),
    field("cover", "media"),
    field("gallery", "media", { multiple: true }),
    field("aliases", "text", { multiple: true }),
    field("body", "rich_text", { searchable: true }),
    field("notes", "rich_text"),
    field("author_id", "relation", { target: "authors" }),
    field("secret_id", "relation", { target: "hidden" }),
    field("related", "relation", { multiple: true, target: "works" }),
    field("price", "number"),
    field("in_print", "boolean"),
    field("day", "date"),
    field("starts_at", "datetime"),
    field("extra", "json"),
  ],
  filterable_fields: [
    "title",
    "category",
    "genre",
    "cover",
    "gallery",
    "aliases",
    "author_id",
    "related",
    "price",
    "in_print",
    "day",
    "starts_at",
    "published_at",
    "created_at",
  ],
  sortable_fields: ["title", "genre", "cover", "price", "in_print", "day", "starts_at"],
};

/** The default list, newest first, is 5 6 4 3 2 1: 5 and 6 tie, and 7 and 8 are drafts. */
const WORK_ENTRIES: BundleEntry[] = [
  entry(
    1,
    "2026-01-01T05:45:00+05:45",
    {
      title: "apple",
      slug: "apple-one",
      category: ["News", "Match Report"],
      genre: "12",
      cover: "T20 final.png",
      gallery: ["a/b.png", "100%.gif"],
      aliases: ["One", "two"],
      body: "<p>Hello <b>orchard</b></p>",
      author_id: libraryId(1),
      secret_id: libraryId(1),
      related: [libraryId(3), libraryId(7), libraryId(99), libraryId(2)],
      price: 10,
      in_print: true,
      day: "2026-01-20",
      starts_at: "2026-01-20T17:30:00+02:00",
      extra: { a: [1, "x y: z, w"], b: { c: null } },
    },
    { created_at: "2025-06-01T00:00:00Z" },
  ),
  entry(
    2,
    "2026-01-02T00:00:00Z",
    {
      title: "Apple",
      slug: "apple-two",
      category: ["News"],
      genre: "9",
      cover: "poster.jpg",
      gallery: [],
      author_id: libraryId(2),
      related: [],
      price: 9,
      in_print: false,
      day: "2026-01-21",
      starts_at: "2026-01-21T00:00:00Z",
    },
    { created_at: "2025-05-01T00:00:00Z" },
  ),
  entry(
    3,
    "2026-01-03T12:00:00.1234Z",
    {
      title: "Äpfel",
      slug: "aepfel",
      category: ["a,b", "100%"],
      genre: "News",
      cover: "Poster.JPG",
      gallery: ["12"],
      aliases: ["7", "x"],
      author_id: libraryId(99),
      related: null,
      price: ROUNDED_NUMBER,
      in_print: true,
      day: "2025-12-31",
      starts_at: "2026-01-20T15:30:00.001Z",
      extra: "plain",
    },
    { created_at: "2025-04-01T00:00:00Z" },
  ),
  entry(
    4,
    "2026-01-04T00:00:00Z",
    {
      title: "banana",
      slug: "",
      category: [],
      genre: "news",
      cover: "ü+ö&.webp",
      related: [libraryId(4)],
      price: -1.5,
    },
    { created_at: "2025-03-01T00:00:00Z" },
  ),
  entry(
    5,
    "2026-01-05T00:00:00Z",
    {
      title: "Zebra",
      slug: "zebra",
      genre: null,
      cover: "12",
      author_id: libraryId(6),
      price: null,
      in_print: false,
      day: "1999-02-28",
      starts_at: "1999-12-31T23:59:59.999Z",
    },
    { created_at: "2025-02-01T00:00:00Z" },
  ),
  entry(
    6,
    "2026-01-05T00:00:00Z",
    { slug: "untitled", category: ["news"], genre: "3.5", author_id: libraryId(1).toUpperCase(), price: 0 },
    { created_at: "2025-01-01T00:00:00Z" },
  ),
  entry(
    7,
    "2026-01-06T00:00:00Z",
    { title: "apple", slug: "draft", price: 10 },
    { status: "draft", published_at: null },
  ),
  entry(8, "2026-01-07T00:00:00Z", { title: "Withdrawn", slug: "withdrawn" }, { status: "draft" }),
];

const AUTHORS: BundleType = {
  slug: "authors",
  name: "Authors",
  description: "",
  icon: "",
  position: 1,
  per_page: 2,
  default_sort: "name",
  summary_fields: ["photo", "name"],
  fields: [
    field("name", "text", { searchable: true, required: true }),
    field("bio", "rich_text", { searchable: true }),
    field("photo", "media"),
    field("friend_id", "relation", { target: "authors" }),
  ],
  filterable_fields: [],
  sortable_fields: [],
};

const AUTHOR_ENTRIES: BundleEntry[] = [
  entry(1, "2026-01-01T00:00:00Z", {
    name: "Ann",
    bio: "<p>writer</p>",
    photo: "ann.png",
    friend_id: libraryId(3),
  }),
  entry(2, "2026-01-01T00:00:00Z", { name: "Ben", bio: "writer" }, { status: "draft" }),
  entry(3, "2026-01-01T00:00:00Z", { name: "Cid", bio: "writer", friend_id: libraryId(1) }),
  entry(4, "2026-01-01T00:00:00Z", { name: "bob", bio: "writer" }),
  entry(5, "2026-01-01T00:00:00Z", { name: "Dee" }),
  entry(8, "2026-01-01T00:00:00Z", { name: "Eve" }),
];

const TEXTS: BundleType = {
  slug: "texts",
  name: "Texts",
  description: "",
  icon: "",
  position: 2,
  fields: [
    field("category", "select"),
    field("title", "text", { searchable: true }),
    field("body", "rich_text", { searchable: true }),
    field("kinds", "select", { searchable: true, multiple: true }),
    field("aside", "text"),
  ],
  filterable_fields: ["title", "published_at"],
  sortable_fields: ["title"],
};

const HIDDEN_FROM_SEARCH =
  '<p class="walrus" title="a > walrus">seal</p><!-- walrus --><script>if (1 < 2) walrus()</script>' +
  "<style>.walrus { color: red }</style>";

const TEXT_ENTRIES: BundleEntry[] = [
  entry(1, "2026-01-01T00:00:00Z", { title: "otter", category: "Water" }),
  entry(2, "2026-01-05T00:00:00Z", { title: "otter" }),
  entry(3, "2026-01-09T00:00:00Z", { title: "Otters" }),
  entry(4, "2026-01-09T00:00:00Z", { title: "otter" }, { status: "draft" }),
  entry(11, "2026-01-01T00:00:00Z", { title: "red panda" }),
  entry(12, "2026-01-02T00:00:00Z", { title: "panda", body: "<p>red</p>" }),
  entry(13, "2026-01-01T00:00:00Z", { body: HIDDEN_FROM_SEARCH }),
  entry(14, "2026-01-01T00:00:00Z", { body: "<p>hor</p><p>net</p> lo<br>ris mar<br/>ten" }),
  entry(15, "2026-01-01T00:00:00Z", { body: "wea<b>sel</b> st<em>o</em><a href='x'>at</a>" }),
  entry(16, "2026-01-01T00:00:00Z", { body: "caf&eacute; &amp;lt; na&#239;ve &#x65E5;&#26412; a&nbsp;ibis" }),
  entry(17, "2026-01-01T00:00:00Z", { title: "Москва МЕТРО" }),
  entry(18, "2026-01-01T00:00:00Z", { title: "東京都庁 हिन्दी" }),
  entry(19, "2026-01-01T00:00:00Z", { title: "Été 2026", aside: "capybara" }),
  entry(20, "2026-01-01T00:00:00Z", { kinds: ["lynx", "puma cub"] }),
  entry(21, "2026-01-09T00:00:00Z", { title: "fox wolfs" }),
  entry(22, "2026-01-08T00:00:00Z", { title: "foxes and a wolf" }),
  entry(23, "2025-01-01T00:00:00Z", { title: "the wolf, the fox" }),
  entry(24, "2026-01-01T00:00:00Z", { title: "snow_leopard 100%" }),
];

const SEARCH: BundleType = {
  slug: "search",
  name: "Search",
  description: "",
  icon: "",
  fields: [
    field("label", "text", { searchable: true }),
    field("category", "select", { multiple: true }),
    field("slug", "text"),
  ],
  filterable_fields: ["label"],
  sortable_fields: ["label"],
};

const CONSTRUCTOR: BundleType = {
  slug: "constructor",
  name: "Constructor",
  description: "",
  icon: "",
  fields: [field("constructor", "number"), field("sort", "text"), field("page", "boolean"), field("filter", "select")],
  filterable_fields: ["constructor", "sort", "page", "filter"],
  sortable_fields: ["constructor", "sort"],
};

const EMPTY: BundleType = {
  slug: "0",
  name: "Empty",
  description: "",
  icon: "",
  fields: [],
  filterable_fields: [],
  sortable_fields: [],
};

const HIDDEN: BundleType = {
  slug: "hidden",
  name: "Hidden",
  description: "",
  icon: "",
  position: 0,
  published: false,
  fields: [field("title", "text", { searchable: true })],
  filterable_fields: ["title"],
  sortable_fields: ["title"],
};
