/**
 * Catalog and schemas: exact bodies (shared/contract.md section 2).
 * Requests are written as a client writes them, answers were worked out by hand.
 */
import { describe, expect, test } from "vitest";
import { ask, ENGINES, openSites } from "../support/sites.ts";

openSites(ENGINES);

describe.each(ENGINES)("catalog and schemas on %s", (site) => {
  const works = {
    slug: "works",
    name: "Works",
    description: 'What we "keep".',
    icon: "book",
    entry_count: 6,
    fields: [
      "title",
      "slug",
      "category",
      "genre",
      "cover",
      "gallery",
      "aliases",
      "body",
      "notes",
      "author_id",
      "secret_id",
      "related",
      "price",
      "in_print",
      "day",
      "starts_at",
      "extra",
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
    searchable_fields: ["title", "category", "body"],
  };
  const item = (slug: string, name: string, entry_count: number, lists: string[][]) => {
    const [fields, filterable_fields, sortable_fields, searchable_fields] = lists;
    const head = { slug, name, description: "", icon: "", entry_count };
    return { ...head, fields, filterable_fields, sortable_fields, searchable_fields };
  };

  test("the catalog lists the published types by position, then by slug", async () => {
    const names = ["constructor", "sort", "page", "filter"];
    const data = [
      item("authors", "Authors", 5, [["name", "bio", "photo", "friend_id"], [], [], ["name", "bio"]]),
      item("texts", "Texts", 17, [
        ["category", "title", "body", "kinds", "aside"],
        ["title", "published_at"],
        ["title"],
        ["title", "body", "kinds"],
      ]),
      works,
      item("0", "Empty", 0, [[], [], [], []]),
      item("constructor", "Constructor", 2, [names, names, ["constructor", "sort"], []]),
      item("search", "Search", 1, [["label", "category", "slug"], ["label"], ["label"], ["label"]]),
    ];
    expect((await ask(site, "/_schemas")).text).toBe(JSON.stringify({ data }));
  });

  test("a schema has five keys for each field, and no entry count", async () => {
    const fields = [
      { name: "category", type: "select", required: false, label: "category", searchable: false },
      { name: "title", type: "text", required: false, label: "title", searchable: true },
      { name: "body", type: "rich_text", required: false, label: "body", searchable: true },
      { name: "kinds", type: "select", required: false, label: "kinds", searchable: true },
      { name: "aside", type: "text", required: false, label: "aside", searchable: false },
    ];
    const data = {
      slug: "texts",
      name: "Texts",
      description: "",
      icon: "",
      fields,
      filterable_fields: ["title", "published_at"],
      sortable_fields: ["title"],
      searchable_fields: ["title", "body", "kinds"],
    };
    expect((await ask(site, "/_schemas/texts")).text).toBe(JSON.stringify({ data }));
  });

  test("a schema gives the type of each field, its label and whether it is required", async () => {
    const { fields } = (await ask(site, "/_schemas/works")).json.data;
    expect(fields.map((field: { type: string }) => field.type).join(" ")).toBe(
      "text text select select media media text rich_text rich_text relation relation relation number boolean date datetime json",
    );
    expect(fields[1]).toEqual({ name: "slug", type: "text", required: true, label: "Slug", searchable: false });
  });

  test.each(["search", "constructor", "0"])("a type may have the slug %s", async (slug) => {
    expect((await ask(site, `/_schemas/${slug}`)).json.data.slug).toBe(slug);
  });
});
