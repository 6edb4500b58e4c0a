/** Contentful: what becomes of the types, entries, assets and languages of a space export. */
import { statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { readContentful } from "../../../cli/convert/formats/contentful.ts";
import { findRecord, htmlOf, readSource, refer, writeSource } from "../../support/conversion.ts";

const link = (linkType: string, id: string) => ({ sys: { type: "Link", linkType, id } });
const field = (id: string, type: string, more = {}) => ({ id, name: id.toUpperCase(), type, ...more });

const CONTENT_TYPES = [
  {
    sys: { id: "post" },
    name: "Post",
    description: "What we write",
    fields: [
      field("title", "Symbol", { required: true, localized: true }),
      field("kind", "Symbol", { validations: [{ in: ["a", "b"] }] }),
      field("body", "RichText"),
      field("notes", "Text"),
      field("plain", "Text"),
      field("day", "Date"),
      field("moment", "Date"),
      field("count", "Integer"),
      field("place", "Location"),
      field("shown", "Boolean"),
      field("words", "Array", { items: { type: "Symbol", validations: [] } }),
      field("cover", "Link", { linkType: "Asset" }),
      field("author", "Link", { linkType: "Entry", validations: [{ linkContentType: ["person"] }] }),
      field("parts", "Array", {
        items: { type: "Link", linkType: "Entry", validations: [{ linkContentType: ["a", "b"] }] },
      }),
      field("hidden", "Symbol", { omitted: true }),
    ],
  },
  { sys: { id: "person" }, name: "Person", fields: [field("name", "Symbol")] },
];
const EDITORS = [
  {
    sys: { contentType: link("ContentType", "post") },
    controls: [
      { fieldId: "notes" },
      { fieldId: "plain", widgetId: "multipleLine" },
      { fieldId: "day", widgetId: "datePicker", settings: { format: "dateonly" } },
    ],
  },
];
const LOCALES = [
  { code: "en", default: true, fallbackCode: null },
  { code: "de", fallbackCode: "en" },
];
const ASSET = {
  sys: { id: "bee", publishedVersion: 1, version: 2 },
  fields: {
    title: { en: "Bee" },
    description: { en: "A <bee>" },
    file: { en: { url: "//images.ctfassets.net/s/bee/b%20e.png", fileName: "b e.png", contentType: "image/png" } },
  },
};
const PERSON = { sys: { id: "ada", contentType: link("ContentType", "person") }, fields: { name: { en: "Ada" } } };

type Entry = { sys?: object; fields?: object; metadata?: object };

function makeExport(entries: readonly Entry[], more = {}): string {
  const posts = entries.map(({ sys, ...rest }, index) => ({
    sys: { id: `p${index}`, contentType: link("ContentType", "post"), publishedVersion: 4, version: 5, ...sys },
    ...rest,
  }));
  const content = { contentTypes: CONTENT_TYPES, editorInterfaces: EDITORS, entries: [PERSON, ...posts] };
  return JSON.stringify({ ...content, assets: [ASSET], locales: LOCALES, roles: [{}], ...more }, null, 1);
}

async function convert(entries: readonly Entry[], locale: string | null = null, more = {}) {
  return await readSource(readContentful, writeSource({ "export.json": makeExport(entries, more) }), locale);
}

const IMAGE = {
  kind: "media",
  path: null,
  name: "b e.png",
  address: "https://images.ctfassets.net/s/bee/b%20e.png",
};

test("the fields of a content type are declared with their types, labels and targets", async () => {
  const { collections } = await convert([]);
  expect(collections[0]).toMatchObject({ collection: "post", name: "Post", description: "What we write" });
  const declared = collections[0]?.fields?.map(({ name, type, multiple, target, required }) =>
    [name, type, multiple ? "many" : "", target, required ? "required" : ""].filter(Boolean).join(" "),
  );
  expect(declared).toEqual([
    "title text required",
    "kind select",
    "body rich_text",
    "notes rich_text",
    "plain text",
    "day date",
    "moment",
    "count number",
    "place json",
    "shown boolean",
    "words text many",
    "cover media",
    "author relation person",
    "parts many",
  ]);
});

test("an entry keeps its values, dates, links, image and tags", async () => {
  const fields = {
    title: { en: "Hello" },
    plain: { en: "*plain*" },
    notes: { en: "*notes* ![x](//images.ctfassets.net/x.png)" },
    count: { en: 0 },
    place: { en: { lat: 1, lon: 2 } },
    words: { en: ["a", "b"] },
    cover: { en: link("Asset", "bee") },
    author: { en: link("Entry", "ada") },
    parts: { en: [link("Entry", "ada"), link("Entry", "gone")] },
    hidden: { en: "x" },
  };
  const dates = { createdAt: "2024-01-01T00:00:00Z", updatedAt: "2024-03-01T00:00:00Z" };
  const sys = { ...dates, firstPublishedAt: "2024-02-01T00:00:00Z", publishedAt: "2024-03-01T00:00:00Z" };
  const tags = [{ sys: { id: "spring" }, name: "Spring!" }];
  const metadata = { tags: [link("Tag", "spring")], concepts: [] };
  const conversion = await convert([{ sys, fields, metadata }], null, { tags });
  const { html, ...record } = {
    html: htmlOf(findRecord(conversion, "post", "p0").fields.notes),
    ...findRecord(conversion, "post", "p0"),
  };
  expect(html).toBe('<p><em>notes</em> <img src="https://images.ctfassets.net/x.png" alt="x" /></p>');
  expect(record).toMatchObject({
    status: "published",
    published: "2024-02-01T00:00:00Z",
    created: "2024-01-01T00:00:00Z",
    updated: "2024-03-01T00:00:00Z",
    fields: {
      title: "Hello",
      plain: "*plain*",
      count: 0,
      place: { kind: "json", value: { lat: 1, lon: 2 } },
      words: ["a", "b"],
      cover: IMAGE,
      author: refer("person", "ada"),
      parts: [refer("person", "ada")],
      tags: ["Spring!"],
    },
  });
  expect(record.fields).not.toHaveProperty("hidden");
  const { line } = record.place;
  expect(conversion.losses).toEqual([
    `export.json:${line} links of post.parts (1): lead to what the export lacks: export drafts and archived content`,
    `export.json:${line} post.hidden (1): is omitted from Contentful's own answers as well`,
  ]);
  expect(makeExport([{ sys, fields, metadata }], { tags }).split("\n")[(line as number) - 1]).toBe("  {");
  expect(findRecord(conversion, "assets", "bee").fields).toEqual({ title: "Bee", description: "A <bee>", file: IMAGE });
});

test.each([
  ["published", {}, "published", null],
  ["never published", { publishedVersion: undefined }, "draft", null],
  ["archived", { archivedVersion: 4 }, "draft", /archived content \(1\)/],
  ["changed since", { version: 9 }, "published", /published texts that were changed since \(1\)/],
])("an entry that is %s", async (_what, sys, status, loss) => {
  const conversion = await convert([{ sys }]);
  expect(findRecord(conversion, "post", "p0").status).toBe(status);
  if (loss === null) expect(conversion.losses).toEqual([]);
  else expect(conversion.losses.join()).toMatch(loss);
});

describe("rich text", () => {
  const text = (value: string, type?: string) => ({ nodeType: "text", value, marks: type ? [{ type }] : [], data: {} });
  const node = (nodeType: string, content: object[], target?: object) => ({ nodeType, content, data: { target } });
  const body = (...content: object[]) => ({ fields: { body: { en: node("document", content) } } });

  test("becomes HTML, with the images and files of the space", async () => {
    const conversion = await convert([
      body(
        node("heading-2", [text("Top")]),
        node("paragraph", [text("a\nb", "bold"), node("asset-hyperlink", [text("see")], link("Asset", "bee"))]),
        node("embedded-asset-block", [], link("Asset", "bee")),
      ),
    ]);
    expect(htmlOf(findRecord(conversion, "post", "p0").fields.body)).toBe(
      `<h2>Top</h2><p><b>a<br/>b</b><a href="${IMAGE.address}">see</a></p><img src="${IMAGE.address}" alt="A &lt;bee>">`,
    );
    expect(conversion.losses).toEqual([]);
  });

  test("loses entries within it, and says so", async () => {
    const conversion = await convert([
      body(
        node("paragraph", [node("entry-hyperlink", [text("Ada")], link("Entry", "ada")), text("!")]),
        node("embedded-entry-block", [], link("Entry", "ada")),
        node("embedded-asset-block", [], link("Asset", "gone")),
      ),
    ]);
    expect(htmlOf(findRecord(conversion, "post", "p0").fields.body)).toBe("<p>Ada!</p>");
    expect(conversion.losses.map((loss) => loss.replace(/: rich .*$|^\S+ /g, ""))).toEqual([
      "links to entries in rich text (1)",
      "entries embedded in rich text (1)",
      "embedded assets that the export lacks (1)",
    ]);
  });

  test("and media use the files that were downloaded with the export", async () => {
    const entry = body(node("embedded-asset-block", [], link("Asset", "bee")));
    const source = writeSource({
      "export.json": makeExport([entry]),
      "images.ctfassets.net/s/bee/b e.png": "pixels",
    });
    const conversion = await readSource(readContentful, source);
    const path = join(source, "images.ctfassets.net/s/bee/b e.png");
    expect(findRecord(conversion, "assets", "bee").fields.file).toEqual({ ...IMAGE, path });
    expect(findRecord(conversion, "post", "p0").fields.body).toEqual({
      kind: "html",
      html: '<img src="images.ctfassets.net/s/bee/b%20e.png" alt="A &lt;bee>">',
      folder: source,
    });
  });
});

describe("of several languages", () => {
  const entries = [
    { fields: { title: { en: "Hello", de: "Hallo" }, plain: { en: "same" } } },
    { fields: { title: { en: "Only" } } },
  ];

  test("the default is read, and the values of others are counted", async () => {
    const conversion = await convert(entries);
    expect(findRecord(conversion, "post", "p0").fields.title).toBe("Hello");
    expect(conversion.losses).toHaveLength(1);
    expect(conversion.losses[0]).toMatch(/ values in de \(1\): convert again with --locale de/);
  });

  test("another one is read where there is a value, and else what Contentful would show", async () => {
    const conversion = await convert(entries, "de");
    expect(findRecord(conversion, "post", "p0").fields).toEqual({ title: "Hallo", plain: "same" });
    expect(findRecord(conversion, "post", "p1").fields.title).toBe("Only");
    expect(conversion.losses[0]).toMatch(/ values in en \(1\)/);
  });

  test("an unknown one is an error that names those that there are", async () => {
    await expect(convert(entries, "fr")).rejects.toThrow(/^export\.json: has no locale "fr"; it has de, en$/);
  });
});

test("the bytes of both passes add up to the file", async () => {
  const source = writeSource({ "export.json": makeExport([]) });
  const { bytes } = await readSource(readContentful, source);
  expect(bytes).toBe(statSync(join(source, "export.json")).size);
});

test.each([
  ["another JSON", { "a.json": '{"entries":[]}' }, /^a\.json: has no contentTypes or no locales/],
  [
    "an entry of something else",
    { "a.json": '{"entries":[\n\n{"a":1}]}' },
    /^a\.json:3: is one of "entries" without sys.id/,
  ],
  ["broken JSON", { "a.json": '{"entries":[\n{"a":1}\n{"b":2}]}' }, /^a\.json:3: is not valid JSON: Unexpected "\{"/],
  ["JSON that was cut off", { "a.json": '{"tags":[\n{"sys":{}},' }, /^a\.json:2: is not valid JSON: it ends too early/],
  ["other bytes", { "a.json": Buffer.from('{\n"é été"', "latin1") }, /^a\.json:2: is not valid UTF-8/],
  ["two files", { "a.json": "{}", "b.json": "{}" }, /holds several JSON files; specify/],
])("%s is an error that says where and what would be right", async (_what, files, message) => {
  await expect(readSource(readContentful, writeSource(files as Record<string, string>))).rejects.toThrow(message);
});
