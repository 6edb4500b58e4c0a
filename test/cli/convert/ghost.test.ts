/** Ghost: what becomes of posts, pages, tags, authors and images of an export. */
import { statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readGhost } from "../../../cli/convert/formats/ghost.ts";
import { findRecord, htmlOf, readSource, refer, writeSource } from "../../support/conversion.ts";

type Json = Record<string, unknown>;

const USERS = [
  { id: "u1", name: "Ada", slug: "ada", email: "ada@example.com", password: "$2a$10$x", profile_image: null },
  { id: "u2", name: "Bo", slug: "bo", email: "bo@example.com" },
  { id: "u3", name: "Guest who wrote nothing", slug: "guest" },
];
const TAGS = [
  { id: "t1", name: "News", slug: "news", visibility: "public", meta_title: "All news" },
  { id: "t2", name: "#hidden", slug: "hash-hidden", visibility: "internal" },
];
const IMAGE = "__GHOST_URL__/content/images/2024/05/b%20e.png";
const POST = {
  id: "p1",
  title: "Hello",
  slug: "hello",
  html: `<p>x <img src="${IMAGE}"> <a href="__GHOST_URL__/about/">about</a></p>`,
  feature_image: IMAGE,
  featured: 1,
  type: "post",
  status: "published",
  visibility: "public",
  created_at: "2024-05-01T10:00:00.000Z",
  updated_at: "2024-05-03 10:00:00",
  published_at: 1_714_644_000_000,
  custom_excerpt: "Short",
};

function makeExport(posts: readonly Json[], more: Json = {}): string {
  const data = {
    posts,
    posts_meta: [{ post_id: "p1", feature_image_alt: "A bee", meta_title: "Hello!" }],
    users: USERS,
    tags: TAGS,
    posts_tags: [
      { post_id: "p1", tag_id: "t2", sort_order: 1 },
      { post_id: "p1", tag_id: "t1", sort_order: 0 },
    ],
    posts_authors: [
      { post_id: "p1", author_id: "u2", sort_order: 1 },
      { post_id: "p1", author_id: "u1", sort_order: 0 },
    ],
    settings: [{ key: "title", value: "Site" }],
    ...more,
  };
  return JSON.stringify({ db: [{ meta: { version: "5.0.0" }, data }] }, null, 1);
}

async function convert(...posts: Json[]) {
  return await readSource(readGhost, writeSource({ "ghost.json": makeExport([POST, ...posts]) }));
}

test("a post keeps its text, images, dates, tags and authors in their order", async () => {
  const source = writeSource({ "ghost.json": makeExport([POST]), "content/images/2024/05/b e.png": "pixels" });
  const conversion = await readSource(readGhost, source);
  const image = {
    kind: "media",
    path: join(source, "content/images/2024/05/b e.png"),
    name: "b e.png",
    address: "/content/images/2024/05/b%20e.png",
  };
  const post = findRecord(conversion, "posts", "p1");
  expect(htmlOf(post.fields.content)).toBe(
    '<p>x <img src="/content/images/2024/05/b%20e.png"> <a href="/about/">about</a></p>',
  );
  expect(post).toMatchObject({
    place: { file: "ghost.json", line: 9 },
    status: "published",
    created: "2024-05-01T10:00:00.000Z",
    updated: "2024-05-03T10:00:00Z",
    published: "2024-05-02T10:00:00.000Z",
    fields: {
      title: "Hello",
      slug: "hello",
      excerpt: "Short",
      featured: true,
      feature_image: image,
      feature_image_alt: "A bee",
      authors: [refer("authors", "u1"), refer("authors", "u2")],
      tags: [refer("tags", "t1"), refer("tags", "t2")],
      meta_title: "Hello!",
    },
  });
  expect(findRecord(conversion, "tags", "t1").fields).toMatchObject({ name: "News", meta_title: "All news" });
  expect(findRecord(conversion, "authors", "u1").fields).toMatchObject({ name: "Ada", slug: "ada" });
  expect(conversion.bytes).toBe(statSync(join(source, "ghost.json")).size);
});

test("authors are those who wrote something, without addresses and passwords, which is said", async () => {
  const { records, losses } = await convert();
  expect(records.filter(({ collection }) => collection === "authors").map(({ key }) => key)).toEqual(["u1", "u2"]);
  expect(JSON.stringify(records)).not.toMatch(/example\.com|\$2a/);
  expect(losses).toHaveLength(1);
  expect(losses[0]).toMatch(/^ghost\.json:\d+ e-mail addresses of authors \(2\)/);
});

test.each([
  ["a draft", { status: "draft" }, "posts", "draft", null],
  ["a page", { type: "page" }, "pages", "published", null],
  ["a page of an old export", { type: undefined, page: 1 }, "pages", "published", null],
  ["scheduled", { status: "scheduled" }, "posts", "draft", /status scheduled \(1\)/],
  ["sent by e-mail alone", { status: "sent" }, "posts", "draft", /status sent \(1\)/],
  [
    "for members only",
    { visibility: "members" },
    "posts",
    "draft",
    /visibility members \(1\): everything here is public/,
  ],
  ["without HTML", { html: null, lexical: "{}" }, "posts", "published", /texts of posts without HTML \(1\): open/],
])("a post that is %s", async (_what, changes, collection, status, loss) => {
  const conversion = await convert({ ...POST, id: "p2", ...changes });
  expect(findRecord(conversion, collection, "p2").status).toBe(status);
  if (loss === null) expect(conversion.losses).toHaveLength(1);
  else expect(conversion.losses[1]).toMatch(loss);
});

test("an export of one author and without `db` is read as well", async () => {
  const data = { posts: [{ id: 1, title: "Old", status: "published", author_id: 1 }], users: [{ id: 1, name: "Ada" }] };
  const source = writeSource({ "old.json": JSON.stringify({ meta: {}, data }) });
  const conversion = await readSource(readGhost, source);
  expect(findRecord(conversion, "posts", "1").fields.authors).toEqual([refer("authors", "1")]);
});

test.each([
  ["another JSON", '{"posts":[]}', /^ghost\.json: has no posts: specify the JSON file that Ghost exports/],
  ["broken JSON", '{"db":[\n{"data":{"posts":[{]}}]}', /^ghost\.json:2: is not valid JSON: Unexpected/],
])("%s is an error that says where", async (_what, text, message) => {
  await expect(readSource(readGhost, writeSource({ "ghost.json": text }))).rejects.toThrow(message);
});
