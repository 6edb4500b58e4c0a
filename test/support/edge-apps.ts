/** Content for tests of edges: apps whose keys, types, fields and values an edge could mistake for each other. */
import type { Bundle, BundleEntry, BundleField, BundleType } from "./model-bundle.ts";

/** The key of the app that has an entry for every value below. */
export const EDGE_KEY = "Shop";
/** The same in other case, a property of every JavaScript object, a folder name of the tree, a key that is hashed. */
const OTHER_KEYS = ["shop", "SHOP", "constructor", "x-53686f70", `Long${"k".repeat(80)}`];
export const EDGE_KEYS = [EDGE_KEY, ...OTHER_KEYS];

/** Values that stand literally in their file names (`s-…`). */
export const LITERAL_VALUES = ["news", "a_b-2", "2020", "true", "-", "x-6e657773", "s-news", "y".repeat(64)];

/** Values whose file names are the hex of their bytes (`x-…`). */
export const NAMED_VALUES = [
  "News",
  "Match Report",
  "a+b",
  "100%",
  "%6e%65ws",
  "a&b=c",
  "a/b",
  "../../news",
  "[news]",
  "a,b;c",
  "it's",
  '"quoted"',
  "<b>",
  "a\\b",
  "#news",
  "?news",
  " news ",
  "\t\n",
  "café",
  "cafe\u0301",
  "日本",
  "\u{1f600}",
  "\ufeffnews",
  "\u00a0",
  "$request_uri",
  "{http.request.uri}",
  "é".repeat(32),
];

/** Values whose file names are hashes (`h-…`). */
export const HASHED_VALUES = ["y".repeat(65), "é".repeat(33), "Long ".repeat(60)];

export function edgeBundles(): Bundle[] {
  const values = [...LITERAL_VALUES, ...NAMED_VALUES, ...HASHED_VALUES];
  return [bundle(EDGE_KEY, values), ...OTHER_KEYS.map((key) => bundle(key, ["news", "News", `only ${key}`]))];
}

export function edgeId(number: number): string {
  return `abcdef00-0000-4000-8000-${String(number).padStart(12, "0")}`;
}

function bundle(key: string, titles: readonly string[]): Bundle {
  return {
    app: { key, name: key },
    types: [POSTS, ...["page", "search", "a-b_c9"].map((slug) => ({ ...POSTS, slug, per_page: 20 }))],
    entries: {
      posts: titles.map((title, index) => entry(key, index + 1, title)),
      page: [entry(key, 1, "news")],
      search: [entry(key, 1, "news")],
      "a-b_c9": [entry(key, 1, "news")],
    },
  };
}

function entry(app: string, number: number, title: string): BundleEntry {
  const stamp = `2026-01-20T12:${String(number).padStart(2, "0")}:00Z`;
  const data = { title, owner: app, price: number / 2, active: number % 2 === 0, day: "2026-01-20", filter: edgeId(1) };
  return { id: edgeId(number), status: "published", published_at: stamp, created_at: stamp, updated_at: stamp, data };
}

function field(name: string, type: BundleField["type"], more: Partial<BundleField> = {}): BundleField {
  return { name, type, label: name, required: false, searchable: type === "text", ...more };
}

const POSTS: BundleType = {
  slug: "posts",
  name: "Posts",
  description: "",
  icon: "",
  per_page: 2,
  fields: [
    field("title", "text"),
    field("owner", "text"),
    field("price", "number"),
    field("active", "boolean"),
    field("day", "date"),
    field("filter", "relation", { target: "posts" }),
  ],
  filterable_fields: ["title", "price", "active", "day", "filter", "published_at"],
  sortable_fields: ["title", "price"],
};
