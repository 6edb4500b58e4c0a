/** The content that `precast init` begins with: types, and entries that show what they are for. */
import type { TemplateName } from "../../shared/settings/common.ts";
import { makeUuid } from "../convert/names.ts";

type Field = Readonly<Record<string, unknown>> & { readonly name: string; readonly type: string };
type Entry = { readonly data: Readonly<Record<string, unknown>>; readonly day: string; readonly isDraft?: boolean };

export type TemplateType = {
  readonly slug: string;
  /** What its file holds. */
  readonly definition: Readonly<Record<string, unknown>> & { readonly fields: readonly Field[] };
  readonly entries: readonly Entry[];
};

const SEARCHED = { searchable: true };
const NEEDED = { required: true };

function field(name: string, type: string, label: string, more: Readonly<Record<string, unknown>> = {}): Field {
  return { name, type, label, required: false, searchable: false, ...more };
}

/** The first two fields of every type here; others find entries by the slug. */
const named = (name: string, label: string) => [
  field(name, "text", label, { ...NEEDED, ...SEARCHED }),
  field("slug", "text", "Slug", NEEDED),
];

function type(
  slug: string,
  [name, description, icon]: readonly [string, string, string],
  fields: readonly Field[],
  {
    filter,
    sort,
    ...more
  }: { readonly filter: readonly string[]; readonly sort: readonly string[]; readonly [more: string]: unknown },
  entries: readonly Entry[],
): TemplateType {
  const lists = { filterable_fields: ["slug", ...filter], sortable_fields: sort };
  return { slug, definition: { slug, name, description, icon, ...more, fields, ...lists }, entries };
}

function entry(day: string, data: Entry["data"]): Entry {
  return { day, data };
}

/** The same in every project: importing a template again updates its entries. */
export function makeEntryId(type: string, slug: string): string {
  return makeUuid("init", type, slug);
}

const BLOG: readonly TemplateType[] = [
  type(
    "posts",
    ["Posts", "What the blog is about, newest first", "document"],
    [
      ...named("title", "Title"),
      field("excerpt", "text", "Excerpt", SEARCHED),
      field("category", "select", "Category", NEEDED),
      field("tags", "select", "Tags", { multiple: true }),
      field("author_id", "relation", "Author", { target: "authors" }),
      field("featured", "boolean", "Featured"),
      field("body", "rich_text", "Body", SEARCHED),
    ],
    {
      ...{ position: 1, default_sort: "-published_at", per_page: 10 },
      filter: ["category", "tags", "author_id", "featured"],
      sort: ["title", "published_at"],
    },
    [
      entry("2026-03-02", {
        ...{ title: "A bakery that opens at four", slug: "a-bakery-that-opens-at-four", category: "Portraits" },
        ...{ excerpt: "Who bakes the bread of a street, and when.", tags: ["bread", "night"], featured: true },
        author_id: makeEntryId("authors", "mara-lindqvist"),
        body: "<p>The lights in Hafen Street go on long before the first tram. <strong>Ines Okafor</strong> has weighed flour here for nineteen years.</p><p>She needs no alarm clock: the sourdough wakes her.</p>",
      }),
      entry("2026-02-17", {
        ...{ title: "How to read a tide table", slug: "how-to-read-a-tide-table", category: "Guides" },
        ...{ excerpt: "Four numbers a day, and what they mean.", tags: ["sea", "walking"], featured: false },
        author_id: makeEntryId("authors", "tom-achterberg"),
        body: "<p>A table has two highs and two lows for each day. Before a walk on the flats, look at the <em>second</em> number.</p><ol><li>Find the day.</li><li>Add an hour in summer.</li><li>Be back two hours before the water.</li></ol>",
      }),
      entry("2026-01-29", {
        ...{ title: "Three soups for February", slug: "three-soups-for-february", category: "Recipes" },
        ...{ excerpt: "Leek, lentil, and one with nearly nothing.", tags: ["soup", "bread"], featured: false },
        author_id: makeEntryId("authors", "mara-lindqvist"),
        body: "<p>Each feeds four, and is better on the second day.</p><ul><li>Leek and potato</li><li>Red lentils with lemon</li><li>Bread soup</li></ul>",
      }),
      {
        ...entry("2026-03-09", {
          ...{ title: "The last lamplighter", slug: "the-last-lamplighter", category: "Portraits", tags: ["night"] },
          ...{ excerpt: "A draft: no reader sees it before it is published.", featured: false },
          author_id: makeEntryId("authors", "tom-achterberg"),
          body: "<p>To be written.</p>",
        }),
        isDraft: true,
      },
    ],
  ),
  type(
    "authors",
    ["Authors", "Who writes", "person"],
    [...named("name", "Name"), field("bio", "rich_text", "About", SEARCHED)],
    { position: 2, default_sort: "name", filter: [], sort: ["name"] },
    [
      entry("2026-01-05", {
        ...{ name: "Mara Lindqvist", slug: "mara-lindqvist" },
        bio: "<p>Writes about people who are awake when others sleep.</p>",
      }),
      entry("2026-01-05", {
        ...{ name: "Tom Achterberg", slug: "tom-achterberg" },
        bio: "<p>Walks, mostly along coasts.</p>",
      }),
    ],
  ),
];

const product = (
  day: string,
  [name, slug, price, category]: readonly [string, string, number, string],
  data: Entry["data"],
) =>
  entry(day, {
    ...{ name, slug, price, currency: "EUR", category_id: makeEntryId("categories", category) },
    ...{ in_stock: true, ...data },
  });

const SHOP: readonly TemplateType[] = [
  type(
    "products",
    ["Products", "What is for sale", "tag"],
    [
      ...named("name", "Name"),
      field("sku", "text", "Article number", NEEDED),
      field("price", "number", "Price", NEEDED),
      field("currency", "select", "Currency", NEEDED),
      field("category_id", "relation", "Category", { target: "categories" }),
      field("colours", "select", "Colours", { multiple: true }),
      field("in_stock", "boolean", "In stock"),
      field("goes_with", "relation", "Goes with", { multiple: true, target: "products" }),
      field("description", "rich_text", "Description", SEARCHED),
    ],
    {
      ...{ position: 1, default_sort: "name", per_page: 24, summary_fields: ["name", "slug", "price"] },
      filter: ["sku", "price", "category_id", "colours", "in_stock"],
      sort: ["name", "price", "published_at"],
    },
    [
      product("2026-02-02", ["Enamel mug", "enamel-mug", 12.5, "kitchen"], {
        ...{ sku: "0101", colours: ["white", "blue"], goes_with: [makeEntryId("products", "tea-towel")] },
        description: "<p>Holds 350 ml, and survives being dropped.</p>",
      }),
      product("2026-02-02", ["Tea towel", "tea-towel", 9, "kitchen"], {
        ...{ sku: "0102", colours: ["blue", "red"], goes_with: [makeEntryId("products", "enamel-mug")] },
        description: "<p>Half linen, 50 by 70 cm, woven in Flanders.</p>",
      }),
      product("2026-02-11", ["Bread knife", "bread-knife", 34, "kitchen"], {
        ...{ sku: "0103", colours: ["beech"], goes_with: [], in_stock: false },
        description: "<p>A blade of 21 cm with a handle of beech.</p>",
      }),
      product("2026-02-20", ["Watering can", "watering-can", 27.9, "garden"], {
        ...{ sku: "0201", colours: ["green", "zinc"], goes_with: [makeEntryId("products", "hand-trowel")] },
        description: "<p>Five litres, with a rose of brass that comes off.</p>",
      }),
      product("2026-02-20", ["Hand trowel", "hand-trowel", 14.9, "garden"], {
        ...{ sku: "0202", colours: ["ash"], goes_with: [makeEntryId("products", "watering-can")] },
        description: "<p>Forged in one piece. The ash handle can be replaced.</p>",
      }),
    ],
  ),
  type(
    "categories",
    ["Categories", "Shelves of the shop", "folder"],
    [...named("name", "Name"), field("rank", "number", "Rank")],
    { position: 2, default_sort: "rank", filter: [], sort: ["name", "rank"] },
    [
      entry("2026-02-01", { name: "Kitchen", slug: "kitchen", rank: 1 }),
      entry("2026-02-01", { name: "Garden", slug: "garden", rank: 2 }),
    ],
  ),
];

const page = (
  [title, slug, section, rank]: readonly [string, string, string, number],
  audience: string,
  body: string,
  related: readonly string[] = [],
) =>
  entry("2026-01-12", {
    ...{ title, slug, section_id: makeEntryId("sections", section), rank, audience, body },
    related: related.map((other) => makeEntryId("pages", other)),
  });

const DOCS: readonly TemplateType[] = [
  type(
    "pages",
    ["Pages", "The manual, page by page", "book"],
    [
      ...named("title", "Title"),
      field("section_id", "relation", "Section", { target: "sections" }),
      field("rank", "number", "Rank in its section", NEEDED),
      field("audience", "select", "Audience", NEEDED),
      field("related", "relation", "See also", { multiple: true, target: "pages" }),
      field("body", "rich_text", "Body", SEARCHED),
    ],
    { position: 1, default_sort: "rank", per_page: 50, filter: ["section_id", "audience"], sort: ["title", "rank"] },
    [
      page(
        ["Install the lamp", "install-the-lamp", "start", 1],
        "everyone",
        "<p>Screw the foot to the desk. The cable goes <strong>through</strong> the arm.</p>",
        ["choose-a-bulb"],
      ),
      page(
        ["Turn it on", "turn-it-on", "start", 2],
        "everyone",
        "<p>Touch the shade. Touch it again for less light.</p>",
      ),
      page(
        ["Choose a bulb", "choose-a-bulb", "care", 1],
        "everyone",
        "<p>Socket E14, at most 6 watts.</p><p>Warm light has 2,700 kelvin.</p>",
        ["install-the-lamp"],
      ),
      page(
        ["Replace the spring", "replace-the-spring", "care", 2],
        "technicians",
        "<p>Pull the plug first. The spring is under tension: hold the arm with both hands.</p>",
        ["install-the-lamp"],
      ),
    ],
  ),
  type(
    "sections",
    ["Sections", "Chapters of the manual", "folder"],
    [...named("title", "Title"), field("rank", "number", "Rank", NEEDED)],
    { position: 2, default_sort: "rank", filter: [], sort: ["rank"] },
    [
      entry("2026-01-12", { title: "First steps", slug: "start", rank: 1 }),
      entry("2026-01-12", { title: "Care and repair", slug: "care", rank: 2 }),
    ],
  ),
];

/** One type to change, because a folder without any says nothing of how one is written. */
const EMPTY: readonly TemplateType[] = [
  type(
    "pages",
    ["Pages", "", "document"],
    [...named("title", "Title"), field("body", "rich_text", "Body", SEARCHED)],
    { filter: [], sort: ["title", "published_at"] },
    [],
  ),
];

export const TEMPLATES: Readonly<Record<TemplateName, readonly TemplateType[]>> = {
  blog: BLOG,
  shop: SHOP,
  docs: DOCS,
  empty: EMPTY,
};
