/** Directus: what becomes of the collections, relations, translations and files of a template or a snapshot. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { stringify } from "yaml";
import { readDirectus } from "../../../cli/convert/formats/directus.ts";
import { findRecord, htmlOf, readSource, refer, writeSource } from "../../support/conversion.ts";

type Json = Record<string, unknown>;

const field = (collection: string, name: string, type: string, meta: Json = {}, schema: Json = {}) => ({
  collection,
  field: name,
  type,
  meta,
  schema,
});
const key = (collection: string) => field(collection, "id", "uuid", {}, { is_primary_key: true });
const alias = (collection: string, name: string, special: string) =>
  field(collection, name, "alias", { special: [special] });
const relation = (collection: string, name: string, related: string | null, meta: Json = {}) => ({
  collection,
  field: name,
  related_collection: related,
  meta,
});
const CHOICES = { choices: [{ value: "draft" }, { value: "published" }, { value: "review" }] };

const SCHEMA = {
  collections: [
    { collection: "posts", meta: { note: "What we write" } },
    ...[
      "tags",
      "heroes",
      "settings",
      "languages",
      "posts_tags",
      "posts_files",
      "posts_blocks",
      "posts_translations",
    ].map((collection) => ({ collection, meta: {} })),
  ],
  fields: [
    ...["posts", "tags", "heroes", "settings", "posts_tags", "posts_files", "posts_blocks", "posts_translations"].map(
      key,
    ),
    field("posts", "status", "string", { interface: "select-dropdown", options: CHOICES }),
    field("posts", "title", "string", { required: true }),
    field("posts", "slug", "string"),
    field("posts", "kind", "string", { options: { choices: [{ value: "a" }] } }),
    field("posts", "body", "text", { interface: "input-rich-text-html" }),
    field("posts", "notes", "text", { interface: "input-rich-text-md" }),
    field("posts", "price", "decimal"),
    field("posts", "day", "date"),
    field("posts", "labels", "json", { interface: "tags" }),
    field("posts", "seo", "json"),
    field("posts", "published_at", "timestamp"),
    field("posts", "date_created", "timestamp", { special: ["date-created"] }),
    field("posts", "date_updated", "timestamp", { special: ["date-updated"] }),
    field("posts", "user_created", "uuid", { special: ["user-created"] }),
    field("posts", "author", "uuid"),
    field("posts", "secret", "hash", { special: ["hash", "conceal"] }),
    field("posts", "image", "uuid", { special: ["file"] }),
    field("posts", "main_tag", "uuid"),
    field("posts", "divider", "alias", { special: ["alias", "no-data"] }),
    alias("posts", "tags", "m2m"),
    alias("posts", "gallery", "files"),
    alias("posts", "blocks", "m2a"),
    alias("posts", "translations", "translations"),
    alias("tags", "main_posts", "o2m"),
    field("tags", "name", "string"),
    field("heroes", "headline", "string"),
    field("settings", "name", "string"),
    field("languages", "code", "string", {}, { is_primary_key: true }),
    field("posts_blocks", "background", "string"),
    field("posts_translations", "title", "string"),
    field("posts_translations", "slug", "string"),
  ],
  relations: [
    relation("posts", "author", "directus_users"),
    relation("posts", "image", "directus_files"),
    relation("posts", "main_tag", "tags", { one_field: "main_posts" }),
    relation("posts_tags", "posts_id", "posts", { one_field: "tags", junction_field: "tags_id", sort_field: "sort" }),
    relation("posts_tags", "tags_id", "tags", { junction_field: "posts_id" }),
    relation("posts_files", "posts_id", "posts", { one_field: "gallery", junction_field: "file" }),
    relation("posts_files", "file", "directus_files", { junction_field: "posts_id" }),
    relation("posts_blocks", "posts_id", "posts", { one_field: "blocks", junction_field: "item", sort_field: "sort" }),
    relation("posts_blocks", "item", null, { junction_field: "posts_id", one_collection_field: "collection" }),
    relation("posts_translations", "posts_id", "posts", {
      one_field: "translations",
      junction_field: "languages_code",
    }),
    relation("posts_translations", "languages_code", "languages", { junction_field: "posts_id" }),
  ],
};

const FILE = "03a7d1c7-81e2-432f-9561-9df2691189c8";
const POST = {
  id: "p1",
  status: "published",
  title: "Hello",
  slug: "hello",
  body: `<p>x <img src="https://cms.example.com/assets/${FILE}?width=8"></p>`,
  notes: "*notes*",
  price: "9.50",
  labels: ["a", "b"],
  seo: { title: "SEO" },
  published_at: "2024-02-01T00:00:00Z",
  date_created: "2024-01-01T00:00:00Z",
  date_updated: "2024-03-01T00:00:00Z",
  author: "u1",
  secret: "$argon2",
  image: FILE,
  main_tag: "t1",
};
const CONTENT: Record<string, unknown> = {
  posts: [POST, { id: "p2", status: "review", title: "Later" }],
  tags: [
    { id: "t1", name: "One", main_posts: ["p1"] },
    { id: "t2", name: "Two" },
  ],
  heroes: [{ id: 7, headline: "Hi" }],
  settings: { id: "s", name: "Site" },
  languages: [{ code: "de-DE" }, { code: "fr-FR" }],
  posts_tags: [
    { id: "1", posts_id: "p1", tags_id: "t1", sort: 2 },
    { id: "2", posts_id: "p1", tags_id: "t2", sort: 1 },
  ],
  posts_files: [{ id: "1", posts_id: "p1", file: FILE }],
  posts_blocks: [{ id: "1", posts_id: "p1", collection: "heroes", item: "7", sort: 1, background: "dark" }],
  posts_translations: [
    { id: "1", posts_id: "p1", languages_code: "de-DE", title: "Hallo", slug: null },
    { id: "2", posts_id: "p1", languages_code: "fr-FR", title: "Bonjour", slug: "bonjour" },
  ],
};
const FILES = [{ id: FILE, filename_disk: `${FILE}.png`, filename_download: "bee.png" }];

function makeTemplate(): Record<string, string> {
  const schema = Object.entries(SCHEMA).map(([name, list]) => [`src/${name}.json`, JSON.stringify(list)]);
  const content = Object.entries(CONTENT).map(([name, rows]) => [
    `src/content/${name}.json`,
    JSON.stringify(rows, null, 1),
  ]);
  return Object.fromEntries([
    ...schema,
    ...content,
    ["src/files.json", JSON.stringify(FILES)],
    [`src/assets/${FILE}.png`, "pixels"],
  ]);
}

test("a record keeps its values, files, relations through junctions and blocks of any collection", async () => {
  const source = writeSource(makeTemplate());
  const conversion = await readSource(readDirectus, source);
  const media = { kind: "media", path: join(source, `src/assets/${FILE}.png`), name: "bee.png", address: null };
  const { fields, ...post } = findRecord(conversion, "posts", "p1");
  expect(post).toMatchObject({
    place: { file: "src/content/posts.json", line: 2 },
    status: "published",
    published: "2024-02-01T00:00:00Z",
    created: "2024-01-01T00:00:00Z",
    updated: "2024-03-01T00:00:00Z",
  });
  expect(htmlOf(fields.body)).toBe(`<p>x <img src="assets/${FILE}.png"></p>`);
  expect(htmlOf(fields.notes)).toBe("<p><em>notes</em></p>");
  const { body, notes, ...others } = fields;
  expect(others).toEqual({
    title: "Hello",
    slug: "hello",
    kind: null,
    price: "9.50",
    day: null,
    labels: ["a", "b"],
    seo: { kind: "json", value: { title: "SEO" } },
    image: media,
    main_tag: refer("tags", "t1"),
    tags: [refer("tags", "t2"), refer("tags", "t1")],
    gallery: [media],
    blocks: [{ kind: "object", fields: { background: "dark", item: refer("heroes", "7") } }],
    translations: [
      { kind: "object", fields: { language: "de-DE", title: "Hallo", slug: null } },
      { kind: "object", fields: { language: "fr-FR", title: "Bonjour", slug: "bonjour" } },
    ],
  });
  expect(findRecord(conversion, "posts", "p2").status).toBe("draft");
  expect(findRecord(conversion, "tags", "t1").fields.main_posts).toEqual([refer("posts", "p1")]);
  expect(findRecord(conversion, "settings", "s").fields).toEqual({ name: "Site" });
  expect(conversion.collections.map(({ collection }) => collection)).toEqual(["heroes", "posts", "settings", "tags"]);
  expect(conversion.losses).toEqual([
    "src/content/posts.json:2 posts.author (1): leads to a user of Directus: keep authors in a collection of their own",
    "src/content/posts.json:2 posts.secret (1): is hidden in Directus, and everything here is public",
    "src/content/posts.json:25 status review of posts (1): becomes a draft: publish what shall be seen",
  ]);
});

test("types, targets and what is required are declared as the data model says", async () => {
  const { collections } = await readSource(readDirectus, writeSource(makeTemplate()));
  const posts = collections.find(({ collection }) => collection === "posts");
  expect(posts?.description).toBe("What we write");
  expect(
    posts?.fields?.map(({ name, type, target, required }) =>
      [name, type, target, required ? "required" : ""].join(" "),
    ),
  ).toEqual([
    "title text  required",
    "slug text  ",
    "kind select  ",
    "body rich_text  ",
    "notes rich_text  ",
    "price number  ",
    "day date  ",
    "labels   ",
    "seo json  ",
    "image media  ",
    "main_tag relation tags ",
  ]);
});

test("of translations one language can be read; what it lacks stays, and others are counted", async () => {
  const source = writeSource(makeTemplate());
  const conversion = await readSource(readDirectus, source, "de-DE");
  expect(findRecord(conversion, "posts", "p1").fields).toMatchObject({ title: "Hallo", slug: "hello" });
  expect(conversion.losses.join("\n")).toMatch(/posts\.json:2 fr-FR of posts \(1\): convert again with --locale fr-FR/);
  await expect(readSource(readDirectus, source, "xx")).rejects.toThrow(/has no language "xx"; it has de-DE, fr-FR$/);
});

test("a snapshot in YAML with data beside it is read as well", async () => {
  const source = writeSource({ "snapshot.yaml": stringify(SCHEMA), "tags.json": JSON.stringify(CONTENT.tags) });
  expect(findRecord(await readSource(readDirectus, source), "tags", "t2").fields).toEqual({ name: "Two" });
});

test.each([
  ["data without a data model", { "tags.json": "[]" }, /^tags\.json: there is no data model of Directus beside it/],
  ["a data model alone", { "snapshot.json": JSON.stringify(SCHEMA) }, /has a data model and no data/],
  [
    "broken data",
    { "snapshot.json": JSON.stringify(SCHEMA), "tags.json": '[\n{"id":"t1"},\n{"id":}]' },
    /^tags\.json:3: is not valid JSON: Unexpected "\}"/,
  ],
  ["a broken data model", { "snapshot.json": "{" }, /^snapshot\.json: cannot be read: /],
])("%s is an error that says where", async (_what, files, message) => {
  await expect(readSource(readDirectus, writeSource(files as Record<string, string>))).rejects.toThrow(message);
});
