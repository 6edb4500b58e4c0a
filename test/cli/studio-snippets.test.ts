/** The code in which the studio writes a request: it sends exactly that request, whatever characters are in it. */
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { describe, expect, test } from "vitest";
import { Language, Parser } from "web-tree-sitter";
import { LANGUAGES, quoteKotlin, quoteShell, quoteSwift } from "../../cli/studio/page/snippets.ts";
import type { App } from "../../shared/api/catalog.ts";
import { fieldOf, typeOf } from "../support/types.ts";

const ID = "0b7e8f52-6c1d-4f0e-9d53-0d2f6a1c9a01";
const FIELDS = [
  fieldOf("title", "text"),
  fieldOf("year", "number"),
  fieldOf("open", "boolean"),
  fieldOf("author_id", "relation", { target: "posts" }),
];
const MORE = { filterable_fields: FIELDS.map(({ name }) => name), sortable_fields: ["title", "year"] };
const TYPES = ["posts", "blog-posts", "price"].map((slug) => typeOf(slug, FIELDS, MORE));
const APP: App = { key: "my-shop", name: "Shop", media_base_url: "", types: TYPES };
const write = (language: string, target: string, app = APP) =>
  LANGUAGES[language]?.({ app, url: "http://127.0.0.1:3000", target: `/api/v1${target}` }) ?? "";

const HOSTILE = [
  `it's "quoted"`,
  "back\\slash \\u0041 \\(1 + 1) $name $(id)",
  "two\nlines\r\t\u2028",
  "Zürich, 東京, 🌍",
];

describe("a text in code is that text and nothing else", () => {
  test.each(HOSTILE)("in a shell: %j", (text) => {
    expect(execFileSync("sh", ["-c", `printf %s ${quoteShell(text)}`], { encoding: "utf8" })).toBe(text);
  });

  test("in Swift", () => {
    expect(HOSTILE.map(quoteSwift)).toEqual([
      String.raw`"it's \"quoted\""`,
      String.raw`"back\\slash \\u0041 \\(1 + 1) $name $(id)"`,
      String.raw`"two\u{a}lines\u{d}\u{9}\u{2028}"`,
      `"Zürich, 東京, 🌍"`,
    ]);
  });

  test("in Kotlin, where $ begins a template", () => {
    expect(HOSTILE.map(quoteKotlin)).toEqual([
      String.raw`"it's \"quoted\""`,
      String.raw`"back\\slash \\u0041 \\(1 + 1) \$name \$(id)"`,
      `"${["two", "000alines", "000d", "0009", "2028"].join("\\u")}"`,
      `"Zürich, 東京, 🌍"`,
    ]);
  });
});

const TARGETS = [
  "/_schemas",
  "/posts?filter[title]=it's%20%22%24x%22%5C%0A&page=2",
  "/blog-posts/search?q=Z%C3%BCrich&fields=title,year",
  `/posts/${ID}?populate=author_id`,
  "/no/such/endpoint/at/all",
];

test.each(["Swift", "Kotlin"])("%s can be parsed, and names no bracket as it is", async (language) => {
  await Parser.init();
  const parser = new Parser();
  const name = `tree-sitter-wasms/out/tree-sitter-${language.toLowerCase()}.wasm`;
  parser.setLanguage(await Language.load(createRequire(import.meta.url).resolve(name)));
  for (const target of TARGETS) {
    const code = write(language, target);
    expect([code, parser.parse(code)?.rootNode.hasError]).toEqual([code, false]);
    expect(code).not.toMatch(/[[\]]/);
  }
  expect(parser.parse("class {{{")?.rootNode.hasError).toBe(true);
});

test("curl is given the key and the address as they are", () => {
  expect(write("curl", "/posts?filter[title]=it's")).toBe(
    `curl -g -H 'X-App-Key: my-shop' 'http://127.0.0.1:3000/api/v1/posts?filter[title]=it'\\''s'`,
  );
});

/** Runs the statement of the code with a client that notes what it is called with. */
async function callIn(code: string): Promise<unknown[]> {
  const called: unknown[] = [];
  const note =
    (...names: string[]) =>
    (...args: unknown[]) => {
      called.push(...names, ...args);
      return {};
    };
  const collection = (slug: string) => ({
    list: note(slug, "list"),
    get: note(slug, "get"),
    search: note(slug, "search"),
  });
  const api = { posts: collection("posts"), type: collection, catalog: note("catalog"), schema: note("schema") };
  const statement = code.slice(code.indexOf("\nconst", code.indexOf("createClient<")) + 1);
  await new Function("api", `return (async () => { ${statement} })()`)(api);
  return called;
}

describe("TypeScript calls the client", () => {
  const cases: [string, unknown[]][] = [
    ["/_schemas", ["catalog"]],
    ["/_schemas/posts", ["schema", "posts"]],
    ["/posts", ["posts", "list"]],
    ["/price?page=2", ["price", "list", { page: 2 }]],
    [
      "/posts?filter[title]=a&filter[year][gte]=2000&filter[year][lt]=2020&filter[open]=1&per_page=25&sort=-year",
      [
        "posts",
        "list",
        { filter: { title: "a", year: { gte: 2000, lt: 2020 }, open: true }, sort: "-year", perPage: 25 },
      ],
    ],
    ["/posts?filter[year][in]=1999,,2000", ["posts", "list", { filter: { year: { in: [1999, 2000] } } }]],
    ["/posts?filter[year][contains]=20", ["posts", "list", { filter: { year: { contains: "20" } } }]],
    ["/posts?filter[year]=12345678901234567890", ["posts", "list", { filter: { year: "12345678901234567890" } }]],
    [
      "/blog-posts/search?q=a%22b%0A&fields=title,%20year",
      ["blog-posts", "search", 'a"b\n', { fields: ["title", "year"] }],
    ],
    [`/posts/${ID}?populate=author_id`, ["posts", "get", ID, { populate: ["author_id"] }]],
  ];
  test.each(cases)("%s", async (target, expected) => {
    expect(await callIn(write("TypeScript", target))).toEqual(expected);
  });

  test("with the types that `precast types` writes for the app", () => {
    expect(write("TypeScript", "/posts")).toContain('import type { MyShop } from "./my-shop.ts";');
  });

  test("and says so when there is no such endpoint", () => {
    expect(write("TypeScript", "/a/b/c")).toBe('// "/api/v1/a/b/c" is no endpoint of the API.');
  });
});
