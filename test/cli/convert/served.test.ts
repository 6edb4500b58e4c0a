/** What other systems export, from the archive to the answer: pages of blocks, images and relations as clients get them. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { create } from "tar";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openEmbeddedPlace, type Place } from "../../support/cli.ts";

let place: Place;
beforeAll(async () => {
  place = await openEmbeddedPlace();
});
afterAll(() => place.close());

const IMAGE = "4e8dda29aa09953eb216ce0e45a4007776dcb556-8x8";
const TEXT = [
  { _type: "block", style: "normal", markDefs: [], children: [{ _type: "span", text: "Hi", marks: [] }] },
  { _type: "image", _sanityAsset: `image@file://./images/${IMAGE}.png`, alt: "A bee" },
];
const DOCUMENTS = [
  { _id: "ada", _type: "person", _createdAt: "2024-01-01T00:00:00Z", name: "Ada" },
  {
    _id: "home",
    _type: "page",
    _createdAt: "2024-01-01T00:00:00Z",
    slug: { _type: "slug", current: "home" },
    text: TEXT,
    blocks: [{ _key: "1", _type: "quote", by: { _type: "reference", _ref: "ada" }, text: TEXT }],
  },
];

test("a Sanity archive is served with its images, and with the ids of what its blocks refer to", async () => {
  const folder = join(place.folder, "set");
  const files = {
    "data.ndjson": DOCUMENTS.map((document) => `${JSON.stringify(document)}\n`).join(""),
    [`images/${IMAGE}.png`]: "pixels",
  };
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  await create({ cwd: folder, file: join(place.folder, "set.tar.gz"), gzip: true }, ["data.ndjson", "images"]);
  expect(await place.call("convert sanity set.tar.gz site --app site")).toMatchObject({ code: 0, stderr: "" });
  expect(readFileSync(join(place.folder, `site/media/${IMAGE}.png`), "utf8")).toBe("pixels");
  expect(await place.call("import site")).toMatchObject({ code: 0 });
  const [person, page] = ["person", "page"].map((type) =>
    JSON.parse(readFileSync(join(place.folder, `site/entries/${type}.ndjson`), "utf8")),
  );
  const html = `<p>Hi</p><img src="http://localhost:3000/site/cms/media/${IMAGE}.png" alt="A bee" />`;
  await place.build();
  const server = await place.serve();
  const { json } = await server.get(`/api/v1/page/${page.id}`, { appKey: "site" });
  expect(json.data).toMatchObject({
    slug: "home",
    text: html,
    blocks: [{ _type: "quote", by: { type: "person", id: person.id }, text: html }],
  });
  expect((await server.stop()).code).toBe(0);
});
