/** `precast convert markdown`: front matter of every kind, images beside the text, and what only a generator can do. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openEmbeddedPlace, type Place } from "../../support/cli.ts";

const PIXEL = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

const SITE: Readonly<Record<string, string | Buffer>> = {
  "blog/2024-01-05-hello.md": `---
title: Hello
tags: [news, first]
author: ada
updated: Jan 7, 2024
cover: ./cover.png
---
A *text* with ~~old~~ words[^1], and a table:

| a | b |
|---|---|
| 1 | 2 |

![A pixel](images/dot.png) <img src="/logo.png?v=2" onerror="alert(1)"> <script>alert(2)</script>

[^1]: The note.
`,
  "blog/cover.png": PIXEL,
  "blog/images/dot.png": Buffer.concat([PIXEL, Buffer.from("dot")]),
  "static/logo.png": Buffer.concat([PIXEL, Buffer.from("logo")]),
  "blog/second/index.md": `+++
title = "Second"
date = 2024-02-03T10:00:00+02:00
draft = true
tags = ["news"]
author = "grace"
[extra]
team = "core"
+++
Look: ![other](dot.png)
`,
  "blog/second/dot.png": Buffer.concat([PIXEL, Buffer.from("another")]),
  "blog/third.md": `{
  "title": "Third",
  "date": "5 March 2024",
  "tags": "news",
  "author": "ada"
}
# A heading

See [the first](./2024-01-05-hello.md).

{{< youtube id >}}
`,
  "authors/ada.md": "---\nname: Ada\n---\nShe writes.\n",
  "authors/grace.md": "---\nname: Grace\n---\nShe too.\n",
  "about.md": "# About us\n\nNo front matter.\n",
  "theme.toml": "x = 1\n",
};

let place: Place;
let said: string;

beforeAll(async () => {
  place = await openEmbeddedPlace();
  for (const [name, text] of Object.entries(SITE)) {
    mkdirSync(dirname(join(place.folder, "site", name)), { recursive: true });
    writeFileSync(join(place.folder, "site", name), text);
  }
  const line = "convert markdown site made --app site --media-base-url https://media.example.com";
  const { code, stderr } = await place.call(line);
  expect(code).toBe(0);
  said = stderr;
});
afterAll(() => place.close());

type Line = { id: string; status: string; published_at: string; updated_at: string; data: Record<string, unknown> };

function entries(slug: string): Line[] {
  const text = readFileSync(join(place.folder, "made/entries", `${slug}.ndjson`), "utf8");
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
}

test("each folder is a type, and front matter in YAML, TOML and JSON gives the fields", () => {
  const [hello, second, third] = entries("blog");
  const [ada, grace] = entries("authors");
  const { body, ...first } = hello?.data ?? {};
  expect(first).toEqual({
    title: "Hello",
    slug: "hello",
    tags: ["news", "first"],
    author: ada?.id,
    cover: "cover.png",
  });
  expect(second?.data).toMatchObject({ title: "Second", slug: "second", author: grace?.id, extra_team: "core" });
  expect(third?.data).toMatchObject({ title: "Third", slug: "third", tags: ["news"] });
  expect(entries("site")[0]?.data).toMatchObject({ title: "About us", slug: "about" });
});

test("dates and drafts survive", () => {
  const told = entries("blog").map(({ status, published_at, updated_at }) => [status, published_at, updated_at]);
  expect(told).toEqual([
    ["published", "2024-01-05T00:00:00.000Z", "2024-01-07T00:00:00.000Z"],
    ["draft", "2024-02-03T08:00:00.000Z", "2024-02-03T08:00:00.000Z"],
    ["published", "2024-03-05T00:00:00.000Z", "2024-03-05T00:00:00.000Z"],
  ]);
});

test("text becomes HTML with tables and footnotes, without what could run", () => {
  const body = String(entries("blog")[0]?.data.body);
  expect(body).toContain("<em>text</em>");
  expect(body).toContain("<del>old</del>");
  expect(body).toMatch(/<td>1<\/td>/);
  expect(body).toMatch(/The note\./);
  expect(body).not.toMatch(/script|alert|onerror/);
});

test("images beside the text are media of the bundle, each under a name of its own, and their addresses lead there", () => {
  const names = readdirSync(join(place.folder, "made/media")).sort();
  expect(names).toEqual(["cover.png", expect.stringMatching(/^dot-[0-9a-f]{8}\.png$/), "dot.png", "logo.png"]);
  const at = (name: string) => `src="https://media.example.com/site/cms/media/${name}"`;
  const [hello, second] = entries("blog");
  expect(hello?.data.body).toContain(at("dot.png"));
  expect(hello?.data.body).toContain(at("logo.png"));
  expect(second?.data.body).toContain(at(names[1] ?? ""));
  expect(readFileSync(join(place.folder, "made/media", names[1] ?? ""))).toEqual(SITE["blog/second/dot.png"]);
});

test("what is not carried is said with file and line", () => {
  expect(said.trimEnd().split("\n").sort()).toEqual([
    "Not carried: blog/2024-01-05-hello.md: HTML: <script> was removed: --unsafe-html keeps it",
    "Not carried: blog/2024-01-05-hello.md: HTML: the attribute onerror was removed: --unsafe-html keeps it",
    'Not carried: blog/third.md: href="./2024-01-05-hello.md": links to a file, which has no address here',
    "Not carried: blog/third.md:11: template code ({{<): only the site's generator runs it: it stays as text",
    "Not carried: theme.toml: the file: is neither Markdown nor an image",
  ]);
});

test("--unsafe-html keeps HTML as it is, but for the addresses of images", async () => {
  expect((await place.call("convert markdown site raw --unsafe-html")).code).toBe(0);
  const text = readFileSync(join(place.folder, "raw/entries/blog.ndjson"), "utf8");
  expect(text).toContain("<script>alert(2)</script>");
  expect(text).toContain("/raw/cms/media/dot.png");
});

test.each([
  ["a.md", "---\ntitle: [a\n---\n", /^a\.md:\d: is not valid YAML: /],
  ["a.md", "---\n- a\n---\n", "a.md:1: front matter must name its values, as in title: Hello\n"],
  ["a.md", '+++\ntitle = "a"\nb = \n+++\n', /^a\.md:3: is not valid TOML: /],
  ["a.md", '{\n"a": \n}\n', /^a\.md:1: is not valid JSON: /],
  ["a.txt", "a", "broken: holds no Markdown; specify a folder of .md files, or one of them\n"],
])("%s with %j is refused with its line and what would be right", async (name, text, message) => {
  mkdirSync(join(place.folder, "broken"), { recursive: true });
  for (const old of readdirSync(join(place.folder, "broken"))) writeFileSync(join(place.folder, "broken", old), "");
  const folder = name === "a.txt" ? "broken2" : "broken";
  mkdirSync(join(place.folder, folder), { recursive: true });
  writeFileSync(join(place.folder, folder, name), text);
  const { code, stderr } = await place.call(`convert markdown ${folder} refused`);
  const expected = typeof message === "string" ? message.replace("broken", folder) : message;
  expect([code, stderr]).toEqual([1, typeof expected === "string" ? expected : expect.stringMatching(expected)]);
});
