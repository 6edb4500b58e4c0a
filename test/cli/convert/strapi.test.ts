/** Strapi: what becomes of the entities, components, relations, languages and uploads of an archive of version 4 and 5. */
import { statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { readStrapi } from "../../../cli/convert/formats/strapi.ts";
import { findRecord, htmlOf, packSource, readSource, refer, writeSource } from "../../support/conversion.ts";

type Json = Record<string, unknown>;

const ARTICLE = "api::article.article";
const TAG = "api::tag.tag";
const FILE = "plugin::upload.file";

const SCHEMAS = [
  {
    uid: ARTICLE,
    info: { displayName: "Article", pluralName: "articles", description: "What we write" },
    options: { draftAndPublish: true },
    attributes: {
      title: { type: "string", required: true },
      kind: { type: "enumeration", enum: ["a", "b"] },
      body: { type: "richtext" },
      blocks: { type: "blocks" },
      price: { type: "decimal" },
      day: { type: "date" },
      extra: { type: "json" },
      secret: { type: "password" },
      note: { type: "string", private: true },
      cover: { type: "media", multiple: false },
      gallery: { type: "media", multiple: true },
      tags: { type: "relation", relation: "manyToMany", target: TAG, inversedBy: "articles" },
      owner: { type: "relation", relation: "manyToOne", target: "plugin::users-permissions.user" },
      seo: { type: "component", component: "shared.seo" },
      zone: { type: "dynamiczone", components: ["shared.seo"] },
      createdAt: { type: "datetime" },
      createdBy: { type: "relation", relation: "oneToOne", target: "admin::user" },
    },
  },
  {
    uid: TAG,
    info: { displayName: "Tag", pluralName: "tags" },
    attributes: {
      name: { type: "string" },
      articles: { type: "relation", relation: "manyToMany", target: ARTICLE, mappedBy: "tags" },
    },
  },
  {
    uid: "shared.seo",
    modelType: "component",
    attributes: {
      metaTitle: { type: "string" },
      image: { type: "media" },
      tag: { type: "relation", relation: "oneToOne", target: TAG },
    },
  },
  { uid: FILE, attributes: {} },
];
const UPLOAD = {
  name: "bee.png",
  hash: "bee_1a2b",
  ext: ".png",
  url: "/uploads/bee_1a2b.png",
  alternativeText: "A bee",
};
const morph = (field: string, type: string, ref: number, pos = 1) => ({
  kind: "relation.morph",
  relation: "morphToMany",
  left: { type: FILE, ref: 1, field: "related" },
  right: { type, ref, field, pos },
});
const tag = (article: number, ref: number, pos: number) => ({
  kind: "relation.basic",
  relation: "manyToMany",
  left: { type: ARTICLE, ref: article, field: "tags", pos },
  right: { type: TAG, ref, field: "articles", pos: 1 },
});

const lines = (rows: readonly unknown[]) => rows.map((row) => `${JSON.stringify(row)}\n`).join("");
const entity = (type: string, id: number, data: Json) => ({ type, id, data });

function makeFiles(entities: readonly Json[], links: readonly Json[] = [], configuration: readonly Json[] = []) {
  return {
    "metadata.json": "{}",
    "schemas/schemas_00001.jsonl": lines(SCHEMAS),
    "entities/entities_00001.jsonl": lines([entity(FILE, 1, UPLOAD), ...entities]),
    "links/links_00001.jsonl": lines(links),
    "configuration/configuration_00001.jsonl": lines(configuration),
    "assets/uploads/bee_1a2b.png": "pixels",
  };
}

async function convert(entities: readonly Json[], links: readonly Json[] = [], locale: string | null = null) {
  const configuration = [{ type: "core-store", value: { key: "plugin_i18n_default_locale", value: "en" } }];
  return await readSource(readStrapi, writeSource(makeFiles(entities, links, configuration)), locale);
}

const nameLosses = (losses: readonly string[]) => losses.map((loss) => loss.replace(/\): .*/, ")"));

test("an entity keeps its values, files, relations in their order, components and dynamic zones", async () => {
  const data = {
    title: "Hello",
    kind: "a",
    body: "*body* ![bee](/uploads/bee_1a2b.png)",
    price: 9.5,
    day: "2024-05-01",
    extra: { a: 1 },
    secret: "$2a$10$x",
    note: "for us",
    seo: { id: 5, metaTitle: "SEO" },
    zone: [{ id: 6, __component: "shared.seo", metaTitle: "Zone" }],
    createdAt: "2024-01-01T00:00:00.000Z",
    updatedAt: "2024-03-01T00:00:00.000Z",
    publishedAt: "2024-02-01T00:00:00.000Z",
  };
  const person = {
    left: { type: ARTICLE, ref: 7, field: "owner" },
    right: { type: "plugin::users-permissions.user", ref: 1 },
  };
  const conversion = await convert(
    [entity(ARTICLE, 7, data), entity(TAG, 1, { name: "One" }), entity(TAG, 2, { name: "Two" })],
    [
      tag(7, 1, 2),
      tag(7, 2, 1),
      morph("cover", ARTICLE, 7),
      morph("gallery", ARTICLE, 7),
      morph("image", "shared.seo", 5),
      { left: { type: "shared.seo", ref: 6, field: "tag" }, right: { type: TAG, ref: 1 } },
      person,
    ],
  );
  const media = {
    kind: "media",
    path: expect.stringMatching(/assets.uploads.bee_1a2b\.png$/),
    name: "bee.png",
    address: UPLOAD.url,
  };
  const { fields, ...record } = findRecord(conversion, "articles", "7");
  expect(record).toMatchObject({
    place: { file: "entities/entities_00001.jsonl", line: 2 },
    status: "published",
    published: "2024-02-01T00:00:00.000Z",
    created: "2024-01-01T00:00:00.000Z",
    updated: "2024-03-01T00:00:00.000Z",
  });
  const { body, ...others } = fields;
  expect(htmlOf(body)).toMatch(/^<p><em>body<\/em> <img src="assets\/uploads\/bee_1a2b\.png" alt="bee"/);
  expect(others).toEqual({
    title: "Hello",
    kind: "a",
    blocks: null,
    price: 9.5,
    day: "2024-05-01",
    extra: { kind: "json", value: { a: 1 } },
    cover: media,
    gallery: [media],
    tags: [refer("tags", "2"), refer("tags", "1")],
    owner: null,
    seo: { kind: "object", fields: { metaTitle: "SEO", image: media, tag: null } },
    zone: [
      {
        kind: "object",
        fields: { component: "shared.seo", metaTitle: "Zone", image: null, tag: refer("tags", "1") },
      },
    ],
  });
  expect(findRecord(conversion, "tags", "1").fields.articles).toEqual([refer("articles", "7")]);
  expect(findRecord(conversion, "files", "1").fields).toMatchObject({ alternativeText: "A bee", file: media });
  expect(nameLosses(conversion.losses)).toEqual([
    "entities/entities_00001.jsonl:2 articles.secret (1)",
    "entities/entities_00001.jsonl:2 articles.note (1)",
    "entities/entities_00001.jsonl:2 articles.owner (1)",
  ]);
});

test("types, targets and what is required are declared as the schemas say", async () => {
  const { collections } = await convert([]);
  expect(collections[0]).toMatchObject({ collection: "articles", name: "Article", description: "What we write" });
  const told = collections[0]?.fields?.map(({ name, type, multiple, target, required }) =>
    [name, type, multiple ? "many" : "", target, required ? "required" : ""].filter(Boolean).join(" "),
  );
  expect(told).toEqual([
    "title text required",
    "kind select",
    "body rich_text",
    "blocks rich_text",
    "price number",
    "day date",
    "extra json",
    "cover media",
    "gallery media many",
    "tags relation many tags",
    "seo json",
    "zone json",
  ]);
});

describe("Strapi 5", () => {
  const version = (id: number, document: string, published: string | null, more: Json = {}) =>
    entity(ARTICLE, id, {
      documentId: document,
      title: `${id}`,
      publishedAt: published,
      updatedAt: "2024-01-02",
      ...more,
    });

  test("has a document once: as published, or as the draft that it is; relations lead to documents", async () => {
    const conversion = await convert(
      [
        version(1, "doc-a", null),
        version(2, "doc-a", "2024-01-02"),
        version(3, "doc-b", null),
        version(4, "doc-c", null, { updatedAt: "2024-02-01" }),
        version(5, "doc-c", "2024-01-02"),
        entity(TAG, 9, { documentId: "tag-a", name: "One", publishedAt: "2024-01-01" }),
      ],
      [tag(1, 9, 1), tag(2, 9, 1)],
    );
    const articles = conversion.records.filter(({ collection }) => collection === "articles");
    expect(articles.map(({ key, status, fields }) => [key, status, fields.title])).toEqual([
      ["doc-a", "published", "2"],
      ["doc-b", "draft", "3"],
      ["doc-c", "published", "5"],
    ]);
    expect(findRecord(conversion, "articles", "doc-a").fields.tags).toEqual([refer("tags", "tag-a")]);
    expect(findRecord(conversion, "tags", "tag-a").fields.articles).toEqual([refer("articles", "doc-a")]);
    expect(nameLosses(conversion.losses)).toEqual([
      "entities/entities_00001.jsonl:5 drafts newer than what is published (1)",
    ]);
  });

  test("has languages, of which one is read", async () => {
    const entities = [
      entity("plugin::i18n.locale", 1, { code: "en" }),
      entity("plugin::i18n.locale", 2, { code: "de" }),
      version(1, "doc-a", "2024-01-02", { locale: "en", title: "Hello" }),
      version(2, "doc-a", "2024-01-02", { locale: "de", title: "Hallo" }),
    ];
    const english = await convert(entities);
    expect(findRecord(english, "articles", "doc-a").fields.title).toBe("Hello");
    expect(english.losses.join()).toMatch(/entries in de \(1\): convert again with --locale de for these/);
    expect(findRecord(await convert(entities, [], "de"), "articles", "doc-a").fields.title).toBe("Hallo");
    await expect(convert(entities, [], "fr")).rejects.toThrow(/has no locale "fr"; it has de, en$/);
  });

  test("has blocks, which become HTML", async () => {
    const text = (value: string, more: Json = {}) => ({ type: "text", text: value, ...more });
    const blocks = [
      { type: "heading", level: 2, children: [text("Top")] },
      {
        type: "paragraph",
        children: [text("a < b", { bold: true }), { type: "link", url: "/x", children: [text("x")] }],
      },
      { type: "list", format: "ordered", children: [{ type: "list-item", children: [text("one")] }] },
      { type: "quote", children: [text("q")] },
      { type: "code", children: [text("1\n2")] },
      { type: "image", image: { url: "/uploads/bee_1a2b.png", alternativeText: "A bee" }, children: [text("")] },
      { type: "chart", children: [text("kept")] },
    ];
    const conversion = await convert([version(1, "doc-a", "2024-01-02", { blocks })]);
    expect(htmlOf(findRecord(conversion, "articles", "doc-a").fields.blocks)).toBe(
      '<h2>Top</h2><p><strong>a &lt; b</strong><a href="/x">x</a></p><ol><li>one</li></ol><blockquote>q</blockquote>' +
        '<pre><code>1<br>2</code></pre><img src="assets/uploads/bee_1a2b.png" alt="A bee">kept',
    );
    expect(nameLosses(conversion.losses)).toEqual(["entities/entities_00001.jsonl:2 blocks of type chart (1)"]);
  });
});

test("Strapi 4: what is not published is a draft, unless its type knows no drafts", async () => {
  const conversion = await convert([
    entity(ARTICLE, 1, { title: "a", publishedAt: null }),
    entity(TAG, 1, { name: "One", publishedAt: null }),
  ]);
  expect(findRecord(conversion, "articles", "1").status).toBe("draft");
  expect(findRecord(conversion, "tags", "1").status).toBe("published");
});

test.each(["export.tar.gz", "export.tar"])("%s is unpacked, and all of its bytes are counted", async (name) => {
  const archive = await packSource(writeSource(makeFiles([entity(TAG, 1, { name: "One" })])), name);
  const conversion = await readSource(readStrapi, archive);
  expect(findRecord(conversion, "tags", "1").fields.name).toBe("One");
  const { path } = findRecord(conversion, "files", "1").fields.file as { path: string };
  expect(statSync(path).size).toBe(6);
  expect(conversion.bytes).toBe(statSync(archive).size);
});

test.each([
  ["an encrypted archive", "export.tar.gz.enc", "x", /^export\.tar\.gz\.enc: is encrypted: .*--no-encrypt/],
  ["another file", "export.tar", "x".repeat(2000), /^export\.tar: cannot be unpacked/],
])("%s is an error that says what would be right", async (_what, name, text, message) => {
  await expect(readSource(readStrapi, join(writeSource({ [name]: text }), name))).rejects.toThrow(message);
});

test("broken lines are errors with their place", async () => {
  const files = { ...makeFiles([]), "entities/entities_00001.jsonl": '{"type":"a","id":1,"data":{}}\n{"type":\n' };
  await expect(readSource(readStrapi, writeSource(files))).rejects.toThrow(
    /^entities\/entities_00001\.jsonl:2: is not valid JSON/,
  );
});
