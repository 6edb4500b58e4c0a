/** Sanity: what becomes of the documents, drafts, texts and files of a dataset. */
import { statSync } from "node:fs";
import { basename } from "node:path";
import { describe, expect, test } from "vitest";
import { readSanity } from "../../../cli/convert/formats/sanity.ts";
import { findRecord, htmlOf, packSource, readSource, refer, writeSource } from "../../support/conversion.ts";

const DIGEST = "4e8dda29aa09953eb216ce0e45a4007776dcb556";
const IMAGE = { _type: "image", _sanityAsset: `image@file://./images/${DIGEST}-8x8.png` };
const ASSETS = JSON.stringify({ [`image-${DIGEST}`]: { originalFilename: "bee.png" } });
const ADA = { _id: "ada", _type: "person", name: "Ada" };

type Json = Record<string, unknown>;

function makeFiles(documents: readonly Json[]): Record<string, string> {
  return {
    "data.ndjson": documents.map((document) => `${JSON.stringify(document)}\n`).join(""),
    "assets.json": ASSETS,
    [`images/${DIGEST}-8x8.png`]: "pixels",
  };
}

async function convert(...documents: Json[]) {
  return await readSource(readSanity, writeSource(makeFiles([ADA, ...documents])));
}

async function convertField(value: unknown) {
  const conversion = await convert({ _id: "p", _type: "post", field: value });
  return {
    ...conversion,
    fields: findRecord(conversion, "post", "p").fields,
    value: conversion.records[1]?.fields.field,
  };
}

const block = (children: readonly Json[], more: Json = {}) => ({
  _type: "block",
  style: "normal",
  children,
  markDefs: [],
  ...more,
});
const span = (text: string, ...marks: string[]) => ({ _type: "span", text, marks });

test("a document keeps its dates, slug, references, images with their texts, and objects", async () => {
  const conversion = await convert({
    _id: "p",
    _type: "post",
    _createdAt: "2024-01-01T00:00:00Z",
    _updatedAt: "2024-03-01T00:00:00Z",
    publishedAt: "2024-02-01T00:00:00Z",
    slug: { _type: "slug", current: "hello" },
    author: { _type: "reference", _ref: "ada" },
    authors: [
      { _key: "1", _ref: "ada" },
      { _key: "2", _ref: "gone" },
    ],
    cover: { ...IMAGE, alt: "A bee", hotspot: { x: 0.5 } },
    gallery: [{ ...IMAGE, _key: "1", alt: "lost" }],
    tags: ["a", "b"],
    sections: [
      { _key: "1", _type: "hero", title: "Hi", text: [block([span("text")])], by: { _ref: "ada" }, image: IMAGE },
    ],
  });
  const media = { kind: "media", path: expect.stringMatching(/images.*png$/), name: "bee.png", address: null };
  expect(findRecord(conversion, "post", "p")).toMatchObject({
    place: { file: "data.ndjson", line: 2 },
    status: "published",
    published: "2024-02-01T00:00:00Z",
    created: "2024-01-01T00:00:00Z",
    updated: "2024-03-01T00:00:00Z",
    fields: {
      slug: "hello",
      author: refer("person", "ada"),
      authors: [refer("person", "ada")],
      cover: media,
      cover_alt: "A bee",
      gallery: [media],
      tags: ["a", "b"],
      sections: [
        {
          kind: "object",
          fields: {
            _type: "hero",
            title: "Hi",
            text: { kind: "html", html: "<p>text</p>" },
            by: refer("person", "ada"),
            image: media,
          },
        },
      ],
    },
  });
  expect(conversion.losses).toEqual([
    "data.ndjson:2 references of authors (1): lead to what the export lacks",
    "data.ndjson:2 hotspot of cover (1): files are whole here: crop the image",
    "data.ndjson:2 texts beside the files of gallery (1): a list of files has none: give each a document",
  ]);
});

test("of a published document and its draft the published one is read, which is said; a draft alone is a draft", async () => {
  const conversion = await convert(
    { _id: "drafts.ada", _type: "person", name: "Ada, changed" },
    { _id: "drafts.bo", _type: "person", name: "Bo" },
    { _id: "p", _type: "post", author: { _ref: "bo" } },
    { _id: "_.groups.x", _type: "system.group" },
    { _id: "secret", _type: "sanity.previewUrlShareAccess", secret: "s3cret" },
    { _id: "versions.r1.ada", _type: "person", name: "Ada, later" },
  );
  expect(conversion.records.map(({ collection, key, status }) => [collection, key, status])).toEqual([
    ["person", "ada", "published"],
    ["person", "bo", "draft"],
    ["post", "p", "published"],
  ]);
  expect(findRecord(conversion, "person", "ada").fields.name).toBe("Ada");
  expect(findRecord(conversion, "post", "p").fields.author).toEqual(refer("person", "bo"));
  expect(conversion.losses.map((loss) => loss.replace(/: .*/, ""))).toEqual([
    "data.ndjson:2 drafts newer than what is published (1)",
    "data.ndjson:7 versions of releases (1)",
  ]);
});

describe("portable text", () => {
  test("becomes HTML, with images of the export, code and links", async () => {
    const { value, losses } = await convertField([
      block([span("Top")], { style: "h2" }),
      block([span("bold", "strong", "underline"), span(" link", "l")], {
        markDefs: [{ _key: "l", _type: "link", href: "https://example.com" }],
      }),
      block([span("item")], { listItem: "bullet", level: 1 }),
      { ...IMAGE, alt: 'A "bee"', caption: "buzz" },
      { _type: "code", language: "js", code: "a < b" },
    ]);
    expect(htmlOf(value)).toBe(
      '<h2>Top</h2><p><strong><u>bold</u></strong><a href="https://example.com"> link</a></p><ul><li>item</li></ul>' +
        `<figure><img src="images/${DIGEST}-8x8.png" alt="A &quot;bee&quot;"><figcaption>buzz</figcaption></figure>` +
        "<pre><code>a &lt; b</code></pre>",
    );
    expect(losses).toEqual([]);
  });

  test("loses what HTML has not, and says so by its kind", async () => {
    const { value, losses } = await convertField([
      block([span("see", "r")], { markDefs: [{ _key: "r", _type: "internalLink", reference: { _ref: "ada" } }] }),
      { _type: "youtube", url: "https://youtu.be/x" },
    ]);
    expect(htmlOf(value)).toBe("<p>see</p>");
    expect(losses).toEqual([
      "data.ndjson:2 marks of type internalLink in field (1): HTML has no such thing: it is left out",
      "data.ndjson:2 blocks of type youtube in field (1): HTML has no such thing: it is left out",
    ]);
  });
});

test("a file of an asset that is not in the export has its address where a document tells it", async () => {
  const url = "https://cdn.sanity.io/files/x/production/0123abc.pdf";
  const conversion = await convert(
    { _id: "file-0123abc-pdf", _type: "sanity.fileAsset", originalFilename: "menu.pdf", url },
    { _id: "p", _type: "post", menu: { _type: "file", asset: { _ref: "file-0123abc-pdf" } } },
  );
  expect(findRecord(conversion, "post", "p").fields.menu).toEqual({
    kind: "media",
    path: null,
    name: "menu.pdf",
    address: url,
  });
});

test.each(["export.tar.gz", "export.tar"])(
  "%s is unpacked, with its files, and all of its bytes are counted",
  async (name) => {
    const files = makeFiles([{ _id: "p", _type: "post", cover: IMAGE }]);
    const folder = writeSource(Object.fromEntries(Object.entries(files).map(([path, text]) => [`set/${path}`, text])));
    const archive = await packSource(folder, name);
    const conversion = await readSource(readSanity, archive);
    const { cover } = findRecord(conversion, "post", "p").fields;
    const { path } = cover as { path: string };
    expect(basename(path)).toBe(`${DIGEST}-8x8.png`);
    expect(statSync(path).size).toBe(6);
    expect(conversion.bytes).toBe(statSync(archive).size);
  },
);

test.each([
  ["broken JSON", { "data.ndjson": '{"_id":"a","_type":"b"}\n{"_id":' }, /^data\.ndjson:2: is not valid JSON/],
  ["another NDJSON", { "data.ndjson": '{"id":1}' }, /^data\.ndjson:1: is no document of Sanity/],
  ["no archive", { "export.tar.gz": "text" }, /^export\.tar\.gz: cannot be unpacked .*: export it again/],
  ["two exports", { "a.ndjson": "", "b.tar.gz": "" }, /holds more than one export/],
])("%s is an error that says where", async (_what, files, message) => {
  await expect(readSource(readSanity, writeSource(files as Record<string, string>))).rejects.toThrow(message);
});
