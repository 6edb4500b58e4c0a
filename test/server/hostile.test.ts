/**
 * Checks hostile input: paths, parameters, headers and bytes that are not HTTP. The server answers, reveals nothing
 * about itself, leaves the tables unchanged, and still finds entries whose values are hostile text.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sql } from "../../shared/sql/query.ts";
import { entry, field, LIBRARY_KEY, libraryId, loadLibrary } from "../support/library.ts";
import type { Bundle } from "../support/model-bundle.ts";
import {
  type ApiServer,
  buildSite,
  loadBundles,
  openApiServer,
  openStore,
  type ReceivedAnswer,
  type RequestOptions,
  type Store,
} from "../support/site.ts";

const KEY = "hostile";
const SECRET = "the-secret-beside-the-tree";
const LEAK = /precast\.|SELECT|\/tmp|node_modules|at .*\(|syntax error|ECONN|ENOENT|node:/i;
const ID = libraryId(1);
const DOORS = ["with a tree", "without a tree"];

/** Texts with a special meaning in SQL, shells, browsers, JavaScript or file systems. */
const HOSTILE_TEXTS = [
  "'",
  "''",
  '"',
  "\\",
  "\\'",
  "';--",
  "' OR '1'='1",
  "'; DROP TABLE precast.entries; --",
  "') UNION SELECT key, name FROM precast.apps --",
  "title' = 'x' OR 'a",
  "1; SELECT pg_sleep(20)",
  "$1",
  "$$ SELECT 1 $$",
  "e.data ->> 'title'",
  "(SELECT version())",
  "/* x */",
  "x' AND 1=(SELECT 1/0) --",
  "%",
  "_",
  "%'%",
  "\\%",
  "E'\\x27'",
  "../../secret.json",
  "..",
  ".",
  "~",
  "/etc/passwd",
  "..\\..\\secret.json",
  "C:\\secret.json",
  "s-other",
  "x-27",
  "file:///etc/passwd",
  "__proto__",
  "constructor",
  "prototype",
  "toString",
  "hasOwnProperty",
  "null",
  "undefined",
  "NaN",
  "[object Object]",
  "#{7*7}",
  "{{7*7}}",
  "<script>alert(1)</script>",
  "line\r\nX-Evil: yes",
  "tab\tbell\u0007",
  "\u202eevil",
  "\ufeff",
  "\u0000",
  "a\u0000b",
  "😀",
  "İ",
  "\uffff",
  "[",
  "]",
  "][",
  "a][b",
  "eq]",
  "a,b,,c",
  "-",
  "--",
  "|cat /etc/passwd",
  "`id`",
  "%00",
  "%252e%252e%252f",
];

/** Malformed percent escapes, and escapes of bytes that are not UTF-8 or not a character. */
const BROKEN_ESCAPES = [
  "%",
  "%2",
  "%ZZ",
  "%u0027",
  "%FF",
  "%C0%AE%C0%AE%C0%AF",
  "%E0%80%AF",
  "%F0%80%80%AF",
  "%ED%A0%80",
  "%ED%B0%80",
  "%ED%A0%80%ED%B0%80",
  "%F4%90%80%80",
  "%80",
  "%EF%BF%BE",
  "%E3%81",
];

const ESCAPED = [...new Set([...HOSTILE_TEXTS.map(encodeURIComponent), ...BROKEN_ESCAPES])];

let store: Store;
const apis = new Map<string, ApiServer>();
let before: unknown;

beforeAll(async () => {
  store = await openStore("postgres");
  await loadLibrary(store);
  await loadBundles(store, [hostileBundle()]);
  await buildSite(store);
  await hideSecrets(store.folder);
  apis.set("with a tree", await openApiServer(store));
  apis.set("without a tree", await openApiServer(store, join(store.folder, "nowhere")));
  before = await tableSums();
});

afterAll(async () => {
  await Promise.all([...apis.values()].map((api) => api.close()));
  await store.close();
});

/** One entry for each text that PostgreSQL can store, with that text as its title, file name and tag. */
function hostileBundle(): Bundle {
  const texts = HOSTILE_TEXTS.filter((text) => !text.includes("\0"));
  const values = JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}');
  const notes = texts.map((text, index) =>
    entry(index + 1, "2026-01-01T00:00:00Z", { title: text, file: text, tags: [text], values }),
  );
  const fields = [
    field("title", "text", { searchable: true }),
    field("file", "media"),
    field("tags", "select", { multiple: true }),
    field("price", "number"),
    field("day", "date"),
    field("at", "datetime"),
    field("yes", "boolean"),
    field("author", "relation", { target: "notes" }),
    field("values", "json"),
  ];
  const filterable_fields = ["title", "file", "tags", "price", "day", "at", "yes", "author", "published_at"];
  const type = {
    slug: "notes",
    name: "Notes",
    description: "",
    icon: "",
    fields,
    filterable_fields,
    sortable_fields: ["title"],
  };
  return { app: { key: KEY, name: "Hostile" }, types: [type], entries: { notes } };
}

/** Writes files that no request may read: beside the tree, in it, and in the folder of another app. */
async function hideSecrets(folder: string): Promise<void> {
  const text = JSON.stringify({ data: SECRET });
  const places = ["", "out", "out/.precast", `out/s-${KEY}`, `out/s-${KEY}/v1`, "out/s-other/v1/notes/page"];
  for (const place of places) {
    await mkdir(join(folder, place), { recursive: true });
    for (const name of ["secret.json", "1.json", "secret"]) {
      if (place !== `out/s-${KEY}/v1` || name !== "1.json") await writeFile(join(folder, place, name), text);
    }
  }
}

async function tableSums(): Promise<unknown> {
  const tables = ["apps", "content_types", "fields", "entries"];
  const sums = tables.map((table) => {
    const text = `SELECT count(*)::text, md5(string_agg(t::text, '|' ORDER BY t::text)) FROM precast.${table} AS t`;
    return store.database.query(sql(text));
  });
  return Promise.all(sums);
}

function ask(site: string, target: string, asked: RequestOptions = {}): Promise<ReceivedAnswer> {
  return (apis.get(site) as ApiServer).get(target, { appKey: KEY, ...asked });
}

/** Sends a request and checks that its answer is harmless. */
async function probe(site: string, target: string, asked: RequestOptions = {}): Promise<ReceivedAnswer> {
  const got = await ask(site, target, asked);
  expectHarmless(target, got);
  return got;
}

/** Checks what must hold for every answer: an expected status, no secret, no injected header, no leak. */
function expectHarmless(target: string, got: ReceivedAnswer): void {
  const statuses = target.length > 16_384 ? [414] : [200, 400, 401, 404];
  expect(statuses, `${target.slice(0, 100)}: ${got.text.slice(0, 300)}`).toContain(got.status);
  expect(got.text, target).not.toContain(SECRET);
  expect(got.text, target).not.toContain('"snapshot"');
  expect(got.headers["x-evil"], target).toBeUndefined();
  expect(Object.values(got.headers).join(""), target).toMatch(/^[\x20-\x7e]*$/);
  expect(got.headers["content-type"] ?? "application/json; charset=utf-8").toBe("application/json; charset=utf-8");
  if (got.json?.error === undefined) return;
  const { code, message, parameter, ...rest } = got.json.error;
  expect(code).toMatch(/^[A-Z_]+$/);
  expect(message, target).not.toMatch(LEAK);
  expect(rest).toEqual({});
  // `parameter` may only repeat what the client sent.
  if (parameter !== undefined) expect(spelling(target), target).toContain(parameter.replace(/\]$/, ""));
}

/** The query as the client wrote it, decoded. */
function spelling(target: string): string {
  return `${decodeURIComponent(new URLSearchParams(target.slice(target.indexOf("?") + 1)).toString().replaceAll("+", " "))} filter`;
}

const PLACES: [string, (text: string) => string][] = [
  ["the content type of a list", (text) => `/api/v1/${text}`],
  ["the content type of a schema", (text) => `/api/v1/_schemas/${text}`],
  ["the content type of an entry", (text) => `/api/v1/${text}/${ID}`],
  ["the content type of a search", (text) => `/api/v1/${text}/search?q=aa`],
  ["an entry id", (text) => `/api/v1/notes/${text}`],
  ["an entry id with populate", (text) => `/api/v1/notes/${text}?populate=author`],
  ["the start of an entry id", (text) => `/api/v1/notes/${text}${ID}`],
  ["the end of an entry id", (text) => `/api/v1/notes/${ID}${text}`],
  ["an extra path segment", (text) => `/api/v1/notes/${ID}/${text}`],
  ["the API version", (text) => `/api/${text}/notes`],
  ["the field of a filter", (text) => `/api/v1/notes?filter[${text}]=x`],
  ["the operator of a filter", (text) => `/api/v1/notes?filter[title][${text}]=x`],
  ["the text after the operator of a filter", (text) => `/api/v1/notes?filter[title][eq]${text}=x`],
  ["the value of a filter on a text field", (text) => `/api/v1/notes?filter[title]=${text}`],
  ["the value of a filter on a media field", (text) => `/api/v1/notes?filter[file]=${text}`],
  ["the value of a filter on a multiple field", (text) => `/api/v1/notes?filter[tags]=${text}`],
  ["the value of a filter on a number field", (text) => `/api/v1/notes?filter[price]=${text}`],
  ["the value of a filter on a date field", (text) => `/api/v1/notes?filter[day]=${text}`],
  ["the value of a filter on a datetime field", (text) => `/api/v1/notes?filter[at]=${text}`],
  ["the value of a filter on a boolean field", (text) => `/api/v1/notes?filter[yes]=${text}`],
  ["the value of a filter on a relation", (text) => `/api/v1/notes?filter[author]=${text}`],
  ["the value of a filter on a timestamp", (text) => `/api/v1/notes?filter[published_at]=${text}`],
  ["the value of a gt filter on a text field", (text) => `/api/v1/notes?filter[title][gt]=${text}`],
  ["the value of an lte filter on a number field", (text) => `/api/v1/notes?filter[price][lte]=${text}`],
  ["the value of a gte filter on a timestamp", (text) => `/api/v1/notes?filter[published_at][gte]=${text}`],
  ["the value of a contains filter on a text field", (text) => `/api/v1/notes?filter[title][contains]=${text}`],
  ["the value of a contains filter on a number field", (text) => `/api/v1/notes?filter[price][contains]=${text}`],
  ["the value of a starts_with filter", (text) => `/api/v1/notes?filter[tags][starts_with]=${text}`],
  ["a value of an in filter", (text) => `/api/v1/notes?filter[title][in]=x,${text}`],
  ["a value of a nin filter", (text) => `/api/v1/notes?filter[tags][nin]=x,${text}`],
  ["a like", (text) => `/api/v1/notes?filter[${text}][like]=x`],
  ["the value of sort", (text) => `/api/v1/notes?sort=${text}`],
  ["the end of a descending sort", (text) => `/api/v1/notes?sort=-title${text}`],
  ["the value of page", (text) => `/api/v1/notes?page=${text}`],
  ["the end of per_page", (text) => `/api/v1/notes?per_page=5${text}`],
  ["a name in fields", (text) => `/api/v1/notes?fields=title,${text}`],
  ["a name in populate", (text) => `/api/v1/notes/${ID}?populate=author,${text}`],
  ["the end of q", (text) => `/api/v1/notes/search?q=aa${text}`],
  ["the filter and the sort of a search", (text) => `/api/v1/notes/search?q=aa&filter[title]=${text}&sort=${text}`],
  ["the name of a parameter", (text) => `/api/v1/notes?${text}=1&filter${text}=1&${text}[polluted]=1`],
];

describe.each(DOORS)("a server %s", (site) => {
  test.each(PLACES)("hostile text as %s gets a harmless answer", async (_, place) => {
    for (const text of ESCAPED) {
      const target = place(text);
      await probe(site, target);
    }
  });

  test.each(ESCAPED.filter((text) => !/%0[07D]|^[A-Za-z]|%09/.test(text)))(
    "app keys made of %s get 401 INVALID_APP_KEY",
    async (text) => {
      for (const appKey of [text, `${KEY}${text}`, `../${text}`]) {
        const got = await probe(site, "/api/v1/notes", { appKey });
        expect([got.status, got.json.error.code]).toEqual([401, "INVALID_APP_KEY"]);
      }
    },
  );

  test.each(["constructor", "toString", "hasOwnProperty", "prototype", "s-hostile", "secret", "Hostile", "HOSTILE"])(
    "the app key %s gets 401 INVALID_APP_KEY",
    async (appKey) => {
      const got = await ask(site, "/api/v1/notes", { appKey });
      expect([got.status, got.json.error.code]).toEqual([401, "INVALID_APP_KEY"]);
    },
  );

  test.each(["__proto__", "constructor", "toString", "hasOwnProperty", "prototype"])(
    "the JavaScript name %s is not a content type, entry, field, operator, sort or parameter",
    async (name) => {
      const cases: [string, string][] = [
        [`/api/v1/${name}`, "CONTENT_TYPE_NOT_FOUND"],
        [`/api/v1/_schemas/${name}`, "CONTENT_TYPE_NOT_FOUND"],
        [`/api/v1/notes/${name}`, "ENTRY_NOT_FOUND"],
        [`/api/v1/notes?filter[${name}]=x`, "INVALID_FILTER"],
        [`/api/v1/notes?filter[${name}][${name}]=x`, "INVALID_FILTER"],
        [`/api/v1/notes?filter[title][${name}]=x`, "INVALID_OPERATOR"],
        [`/api/v1/notes?sort=${name}`, "INVALID_SORT"],
        [`/api/v1/notes?sort=-${name}`, "INVALID_SORT"],
      ];
      for (const [target, code] of cases) expect((await ask(site, target)).json.error.code, target).toBe(code);
      const plain = await ask(site, "/api/v1/notes");
      expect((await ask(site, `/api/v1/notes?${name}=1&${name}[polluted]=1&filter[${name}][like]=x`)).text).toBe(
        plain.text,
      );
    },
  );

  test("an equality filter with a hostile text finds exactly the entry that has it", async () => {
    for (const [index, text] of HOSTILE_TEXTS.filter((one) => !one.includes("\0")).entries()) {
      const value = encodeURIComponent(text);
      for (const query of [`filter[title]=${value}`, `filter[file]=${value}`, `filter[tags]=${value}`]) {
        const got = await ask(site, `/api/v1/notes?${query}`);
        expect(
          got.json.data.map((item: { title: string }) => item.title),
          query,
        ).toEqual([text]);
        expect(got.json.data[0].id).toBe(libraryId(index + 1));
      }
    }
  });

  test.each(["%", "_", "\\", "'"])("a contains filter with %s matches that literal character only", async (sign) => {
    const expected = HOSTILE_TEXTS.filter((text) => text.includes(sign) && !text.includes("\0"));
    const got = await ask(site, `/api/v1/notes?filter[title][contains]=${encodeURIComponent(sign)}&per_page=100`);
    expect(got.json.data.map((item: { title: string }) => item.title).sort()).toEqual(expected.sort());
  });

  test("a JSON value with the keys __proto__ and constructor is returned unchanged", async () => {
    const got = await ask(site, `/api/v1/notes/${ID}`);
    expect(got.text).toContain('"__proto__":{"polluted":true}');
    expect(got.text).toContain('"constructor":{"prototype":{"polluted":true}}');
  });

  test("an equality, in, contains or starts_with filter with U+0000 matches nothing", async () => {
    for (const operator of ["", "[in]", "[contains]", "[starts_with]"]) {
      const got = await ask(site, `/api/v1/notes?filter[title]${operator}=a%00b`);
      expect([got.status, got.json?.meta?.total]).toEqual([200, 0]);
    }
  });

  const CLIMBS = [
    "..",
    "%2e%2e",
    "%2E.",
    "..%2f..%2fsecret",
    "..%2f..%2f..%2fsecret.json",
    "%2e%2e%2f%2e%2e%2fsecret.json",
    "..%5c..%5csecret.json",
    "%5c..%5csecret",
    "....%2f%2fsecret",
    "..%252f..%252fsecret.json",
    "%c0%ae%c0%ae%c0%afsecret.json",
    "..%c0%afsecret.json",
    "..%ef%bc%8fsecret.json",
    "secret",
    "secret.json",
    ".precast",
    ".precast%2fs-hostile",
    "%2fetc%2fpasswd",
    "%2e%2e%2f%2e%2e%2fs-other%2fv1%2fnotes%2fpage%2f1",
    "page",
    "page%2f1",
    "page%2f1.json",
    "1%00",
    "secret%00.json",
    "secret.json%3f",
    "s-other",
    "notes%2fpage%2f1",
  ];
  const CLIMBABLE: ((climb: string) => string)[] = [
    (climb) => `/api/v1/${climb}`,
    (climb) => `/api/v1/${climb}/secret`,
    (climb) => `/api/v1/${climb}/${ID}`,
    (climb) => `/api/v1/_schemas/${climb}`,
    (climb) => `/api/v1/notes/${climb}`,
    (climb) => `/api/v1/notes/${climb}/secret`,
    (climb) => `/api/v1/${climb}/notes`,
    (climb) => `/${climb}/v1/notes`,
    (climb) => `/${climb}`,
    (climb) => `/api/v1/notes?page=${climb}`,
    (climb) => `/api/v1/notes?sort=${climb}`,
    (climb) => `/api/v1/notes?filter[${climb}]=secret`,
  ];

  test.each(CLIMBS)(
    "the path segment %s reveals no file: it gets 400 or 404, and 200 as a filter value",
    async (climb) => {
      for (const target of CLIMBABLE.map((place) => place(climb))) {
        const got = await probe(site, target);
        expect([400, 404], target).toContain(got.status);
      }
      for (const name of ["title", "file", "published_at", "author"]) {
        const got = await probe(site, `/api/v1/notes?filter[${name}]=${climb}`);
        expect(got.status).toBe(200);
      }
    },
  );

  test.each([
    "/../secret.json",
    "/api/v1/../../secret.json",
    "/./secret",
    "//secret.json",
    "/out/secret.json",
    "/secret.json?x",
  ])("the target %s gets NOT_FOUND or CONTENT_TYPE_NOT_FOUND", async (target) => {
    const got = await ask(site, target);
    expect(["NOT_FOUND", "CONTENT_TYPE_NOT_FOUND"]).toContain(got.json.error.code);
  });

  test.each([
    ["field with a line break", "filter[title%0D%0AX-Evil:%20yes][like]=x"],
    ["field with a carriage return", "filter[title%0DX-Evil][like]=x"],
    ["field with a line feed", "filter[title%0AX-Evil][like]=x"],
    ["field with U+0000", "filter[%00][like]=x"],
    ["field in Cyrillic", "filter[%D0%B9][like]=x"],
    ["field with half of a surrogate pair", "filter[%ED%A0%80][like]=x"],
    ["field with a line separator", "filter[%E2%80%A8][like]=x"],
  ])("a like filter on a %s injects no header and gives an X-Request-Warning in ASCII", async (_, query) => {
    const got = await probe(site, `/api/v1/notes?${query}`);
    expect(got.status).toBe(200);
    expect(got.headers["x-request-warning"]).toMatch(/^[\x20-\x7e]*contains[\x20-\x7e]*$/);
  });

  test.each([
    ["one field of 7,000 letters", `filter[${"a".repeat(7_000)}][like]=x`],
    ["one field of 700 emoji", `filter[${"%F0%9F%98%80".repeat(700)}][like]=x`],
    ["500 fields", Array.from({ length: 500 }, (_, index) => `filter[f${index}][like]=x`).join("&")],
  ])("a like filter on %s keeps the response headers below 4,000 characters", async (_, query) => {
    const got = await ask(site, `/api/v1/notes?${query}`);
    expect(got.status).toBe(200);
    expect(Object.values(got.headers).join("").length).toBeLessThan(4_000);
  });

  /** A long like filter has its own test above. */
  const LONG_PLACES = PLACES.filter(([name]) => name !== "a like").map(([, place]) => place);
  const LONG = 8_000;
  const LONG_VALUES = [
    "a",
    "%27",
    "%25",
    "_",
    "%5C",
    "9",
    ",",
    "%00",
    "%F0%9F%98%80",
    "[",
    "-",
    ".",
    "/",
    "%2F",
    "+",
    "(a",
    "<",
  ];

  test.each(LONG_VALUES)("8 KB of %s get a harmless answer in every place except a like filter", async (unit) => {
    const text = unit.repeat(Math.floor(LONG / unit.length));
    for (const place of LONG_PLACES) await probe(site, place(text));
  });

  const PUZZLES: [string, string][] = [
    ["thousands of digits and an exclamation mark", `${"9".repeat(7_000)}!`],
    ["thousands of repeated exponents", `${"1e".repeat(3_000)}x`],
    ["thousands of zeros and an unfinished exponent", `-${"0".repeat(7_000)}.${"0".repeat(400)}e-`],
    ["an exponent of 400 digits", `1e${"9".repeat(400)}`],
    ["a negative exponent of 400 digits", `1e-${"9".repeat(400)}`],
    ["a fraction with 5,000 zeros", `0.${"0".repeat(5_000)}1`],
    ["a second with 6,000 decimals and a letter", `2026-01-20T15:30:00.${"0".repeat(6_000)}x`],
    ["a second with 6,000 decimals", `2026-01-20T15:30:00.${"9".repeat(6_000)}Z`],
    ["the year 0", "0000-01-01T00:00:00Z"],
    ["an instant before the year 0", "0000-01-01T00:00:00+23:59"],
    ["an instant after the year 9999", "9999-12-31T23:59:59-23:59"],
    ["the last instant of the year 9999", "9999-12-31T23:59:59.999999999Z"],
    ["hundreds of beginnings of a UUID", `${"abcdef00-".repeat(700)}`],
    ["thousands of letters and hyphens", `${"a-".repeat(3_000)}a`],
    ["a thousand unclosed tags", "<a%20".repeat(1_000)],
    ["thousands of quotes", "=%22".repeat(1_500)],
    ["a thousand entities", "%26amp;".repeat(1_000)],
  ];

  test.each(PUZZLES)("a value that is hard to parse gets a harmless answer: %s", async (_, text) => {
    for (const name of ["title", "price", "day", "at", "yes", "author", "published_at"]) {
      for (const operator of ["", "[neq]", "[gt]", "[lte]", "[contains]", "[in]", "[nin]"]) {
        const target = `/api/v1/notes?filter[${name}]${operator}=${text}`;
        await probe(site, target);
      }
    }
    for (const place of LONG_PLACES) await probe(site, place(text));
  });

  test("1,000 parameters are answered with 200, and 1,000 filter fields with 400", async () => {
    const many = (name: (index: number) => string) =>
      Array.from({ length: 1_000 }, (_, index) => name(index)).join("&");
    const cases: [string, number][] = [
      [many((index) => `p${index}=1`), 200],
      [many(() => "page=1"), 200],
      [many(() => "filter[title]=1"), 200],
      [many((index) => `f[${index}]=`), 200],
      [many(() => "&"), 200],
      [many((index) => `filter[${index}]=1`), 400],
    ];
    for (const [query, status] of cases) {
      const got = await probe(site, `/api/v1/notes?${query}`);
      expect([got.status, query.slice(0, 30)]).toEqual([status, query.slice(0, 30)]);
    }
  });

  test("a nin filter with 3,000 values that no entry has returns all entries", async () => {
    const got = await ask(site, `/api/v1/notes?filter[title][nin]=${"x,".repeat(3_000)}`);
    expect(got.json.meta.total).toBe(HOSTILE_TEXTS.filter((text) => !text.includes("\0")).length);
  });

  test("thousands of brackets in a filter are an invalid operator, an invalid filter or no filter", async () => {
    for (const [deep, code] of [
      [`filter[title]${"[a]".repeat(2_000)}`, "INVALID_OPERATOR"],
      [`filter[title]${"[".repeat(5_000)}`, "INVALID_OPERATOR"],
      [`filter${"[".repeat(5_000)}`, "INVALID_FILTER"],
      [`filter${"]".repeat(5_000)}[title]`, undefined],
      [`filter${"[title".repeat(1_000)}`, "INVALID_FILTER"],
      [`filter[title]${"]".repeat(5_000)}`, "INVALID_FILTER"],
    ]) {
      const got = await ask(site, `/api/v1/notes?${deep}=x`);
      expect([deep?.slice(0, 20), got.json.error?.code]).toEqual([deep?.slice(0, 20), code]);
    }
  });

  test.each([
    ["commas", ",".repeat(8_000)],
    ["weak prefixes (W/)", "W/".repeat(4_000)],
    ["quotes", '"'.repeat(8_000)],
    ["two tags with thousands of spaces between them", `"a"${" ".repeat(8_000)}"b"`],
    ["SQL", "'; DROP TABLE precast.entries; --"],
    ["a path", "../../secret.json"],
  ])("If-None-Match of %s matches nothing", async (_, tag) => {
    for (const target of ["/api/v1/notes", "/api/v1/notes?per_page=1"]) {
      expect((await ask(site, target, { headers: { "If-None-Match": tag } })).status).toBe(200);
    }
  });

  test("forwarding, method override, Host, Range and credential headers do not change the answer", async () => {
    const plain = await ask(site, "/api/v1/notes");
    const headers = {
      "X-HTTP-Method-Override": "DELETE",
      "X-Forwarded-Host": "evil.example",
      "X-Forwarded-Prefix": "/../..",
      "X-Original-URL": "/secret.json",
      "X-Rewrite-URL": "/secret.json",
      Host: "evil.example",
      Accept: "text/html",
      Range: "bytes=0-3",
      Cookie: "a=' OR 1=1",
      Authorization: "Bearer x",
      "Accept-Language": "x".repeat(4_000),
    };
    const got = await ask(site, "/api/v1/notes", { headers });
    expect([got.status, got.text]).toEqual([200, plain.text]);
    expect(got.headers.etag).toBe(plain.headers.etag);
  });

  const OPEN = `Host: x\r\nX-App-Key: ${KEY}\r\n`;
  const HOST = `${OPEN}Connection: close\r\n`;
  const GET = `GET /api/v1/notes HTTP/1.1\r\n`;

  test.each([
    ["no Host header", `${GET}\r\n`, 400],
    ["two Host headers", `${GET}Host: a\r\nHost: b\r\nX-App-Key: ${KEY}\r\nConnection: close\r\n\r\n`, undefined],
    ["bytes that are not HTTP", "\x00\x01\x02\x03 hello\r\n\r\n", 400],
    ["a method in lower case", `get /api/v1/notes HTTP/1.1\r\n${HOST}\r\n`, 405],
    ["an unknown HTTP version", `GET / HTTP/9.9\r\n${HOST}\r\n`, 400],
    ["a target with a space", `GET /api/v1/no tes HTTP/1.1\r\n${HOST}\r\n`, 400],
    ["a target with raw bytes", `GET /api/v1/\xff\xfe?filter[\xff]=\x80 HTTP/1.1\r\n${HOST}\r\n`, undefined],
    ["a target with U+0000", `GET /api/v1/\x00 HTTP/1.1\r\n${HOST}\r\n`, 400],
    ["the target *", `GET * HTTP/1.1\r\n${HOST}\r\n`, undefined],
    ["an absolute target of another host", `GET http://evil.example/secret.json HTTP/1.1\r\n${HOST}\r\n`, 404],
    ["an absolute target with credentials", `GET http://a:b@evil.example/api/v1/notes HTTP/1.1\r\n${HOST}\r\n`, 200],
    ["a target that is only a question mark", `GET ? HTTP/1.1\r\n${HOST}\r\n`, undefined],
    ["a target with a fragment", `GET /api/v1/notes#?filter[x]=1 HTTP/1.1\r\n${HOST}\r\n`, undefined],
    ["a CONNECT request", "CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n", undefined],
    ["an upgrade to WebSocket", `${GET}${OPEN}Connection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n`, 200],
    ["an unknown Expect header", `${GET}${HOST}Expect: the-unexpected\r\n\r\n`, undefined],
    ["a header without a name", `${GET}${HOST}: x\r\n\r\n`, 400],
    ["a folded header", `${GET}${HOST}X-A: b\r\n c: d\r\n\r\n`, undefined],
    ["a carriage return in a header", `${GET}${HOST}X-A: b\rX-Evil: yes\r\n\r\n`, 400],
    ["a space before the colon of a header", `${GET}${HOST}X-A : b\r\n\r\n`, 400],
    ["two different Content-Length headers", `${GET}${HOST}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`, 400],
    ["a negative Content-Length", `${GET}${HOST}Content-Length: -1\r\n\r\n`, 400],
    [
      "Content-Length with Transfer-Encoding",
      `${GET}${HOST}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      400,
    ],
    ["an unknown Transfer-Encoding", `${GET}${HOST}Transfer-Encoding: x\r\n\r\n`, 400],
    ["malformed chunks", `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\nZZ\r\n`, undefined],
    ["a GET with a body", `${GET}${HOST}Content-Length: 5\r\n\r\nhello`, 200],
    ["two X-App-Key headers", `${GET}${HOST}X-App-Key: ${KEY}\r\n\r\n`, 401],
    [
      "an app key with whitespace around it",
      `${GET}Host: x\r\nConnection: close\r\nX-App-Key: \t ${KEY} \t\r\n\r\n`,
      200,
    ],
    [
      "an app key with a byte outside ASCII",
      `${GET}Host: x\r\nConnection: close\r\nX-App-Key: ${KEY}\xff\r\n\r\n`,
      401,
    ],
    ["headers of 100 KB", `${GET}${HOST}X-A: ${"a".repeat(100_000)}\r\n\r\n`, 431],
    ["a target of 100 KB", `GET /api/v1/${"a".repeat(100_000)} HTTP/1.1\r\n${HOST}\r\n`, 414],
    ["3,000 headers", `${GET}${HOST}${"A: b\r\n".repeat(3_000)}\r\n`, 431],
    ["a request that ends midway", "GET /api/v1/no", undefined],
    ["no bytes", "", undefined],
  ])("raw HTTP, %s: no 5xx, no leak, and the next request is answered", async (_, bytes, status) => {
    const text = await exchange(site, bytes, bytes.length < 20);
    const seen = text === "" ? undefined : Number(/^HTTP\/1\.1 (\d{3}) /.exec(text)?.[1]);
    if (status !== undefined) expect(seen, text.slice(0, 200)).toBe(status);
    expect(seen ?? 400).toBeLessThan(500);
    expect(text).not.toMatch(/^x-evil/im);
    expect(text).not.toContain(SECRET);
    if (seen !== 200) expect(text).not.toMatch(LEAK);
    expect((await ask(site, "/api/v1/notes")).status).toBe(200);
  });

  test("a query with raw bytes gets 400 with the advice to percent-encode it", async () => {
    const text = await exchange(site, `GET /api/v1/notes?filter[x]=\xc3\xa9 HTTP/1.1\r\n${HOST}\r\n`);
    expect(text).toMatch(/^HTTP\/1\.1 400 /);
    expect(text).toContain("Percent-encode them as UTF-8");
  });

  test("a request inside a body is not answered as a second request", async () => {
    const inner = `GET /api/v1/_schemas HTTP/1.1\r\n${HOST}\r\n`;
    const text = await exchange(site, `${GET}${HOST}Content-Length: ${inner.length}\r\n\r\n${inner}`);
    expect(text.split("HTTP/1.1 ").length - 1).toBe(1);
  });

  test("pipelined requests are answered in their order", async () => {
    const one = (target: string, headers: string) => `GET ${target} HTTP/1.1\r\n${headers}\r\n`;
    const first = one("/api/v1/notes?per_page=1", OPEN) + one("/api/v1/nope", OPEN);
    const text = await exchange(site, first + one("/api/v1/_schemas", HOST));
    expect([...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status)).toEqual(["200", "404", "200"]);
    expect(text.indexOf("per_page")).toBeLessThan(text.indexOf("CONTENT_TYPE_NOT_FOUND"));
  });

  test("another app of the same server still has all its works", async () => {
    const got = await ask(site, "/api/v1/works", { appKey: LIBRARY_KEY });
    expect([got.status, got.json.meta.total]).toEqual([200, 6]);
  });
});

describe("after all hostile requests", () => {
  test("the content tables are unchanged", async () => {
    expect(await tableSums()).toEqual(before);
  });

  test("no server has reported an internal error", () => {
    expect([...apis.values()].flatMap((api) => api.errors)).toEqual([]);
  });

  test("no property was added to Object.prototype", () => {
    expect(Object.keys(Object.prototype)).toEqual([]);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    expect(([] as { polluted?: unknown }).polluted).toBeUndefined();
  });

  test("the usage table holds only this app and the shapes list, populate and search", async () => {
    await Promise.all([...apis.values()].map((api) => api.close()));
    const rows = await store.database.query(sql("SELECT DISTINCT app_key, shape FROM precast.usage ORDER BY 1, 2"));
    expect(rows).toEqual([
      [KEY, "list"],
      [KEY, "populate"],
      [KEY, "search"],
    ]);
    apis.clear();
  });
});

/** Sends bytes as they are (latin1), then ends its side if `end` is true, and resolves to all that comes back. */
function exchange(site: string, bytes: string, end = false): Promise<string> {
  const { hostname, port } = new URL((apis.get(site) as ApiServer).url);
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const socket = connect(Number(port), hostname, () => {
      socket.write(Buffer.from(bytes, "latin1"));
      if (end) socket.end();
    });
    socket.on("data", (chunk) => chunks.push(chunk));
    // The server may reset the connection: `close` follows, with what came before.
    socket.on("error", () => {});
    socket.on("close", () => resolve(Buffer.concat(chunks).toString("latin1")));
  });
}
