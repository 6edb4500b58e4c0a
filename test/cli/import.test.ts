/** `precast import`: what a bundle creates, updates and deletes, and which bundles are refused with which problems. */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type ImportOptions, importBundle } from "../../cli/commands/import.ts";
import { openDatabase } from "../../cli/database.ts";
import { describeProblem, ImportProblems } from "../../cli/import/report.ts";
import type { Database } from "../../shared/database/database.ts";
import { sql } from "../../shared/sql/query.ts";
import { openStore, type Store } from "../support/site.ts";
import { until } from "../support/until.ts";

type Json = Record<string, unknown>;
type Files = Record<string, string | Buffer | null>;

const ID = "3f2c1a9e-7b4d-4c1e-9a55-0d6b8f7e2c10";
const OTHER = "9b1d0000-0000-4000-8000-00000000000a";
const APP = { key: "shop", name: "Shop", media_base_url: "https://media.example.com" };

const work = mkdtempSync(join(tmpdir(), "precast-import-"));
afterAll(() => rmSync(work, { recursive: true }));

const FIELDS = [
  field("title", "text", { required: true, searchable: true }),
  field("body", "rich_text", { searchable: true }),
  field("kind", "select"),
  field("price", "number"),
  field("sold", "boolean"),
  field("post_date", "date"),
  field("seen", "datetime"),
  field("photo", "media"),
  field("author_id", "relation", { target: "authors" }),
  field("tags", "select", { multiple: true }),
  field("extra", "json"),
];

const DATA = {
  title: "A first post",
  body: "<p>Hello</p>",
  kind: "news",
  price: 12.5,
  sold: true,
  post_date: "2026-01-20",
  seen: "2026-01-20T15:30:00.123456+02:00",
  photo: "a.png",
  author_id: OTHER,
  tags: ["a", "b"],
  extra: { any: [1, null, "x"] },
};

/** Hidden files are not part of a bundle: its folder of types counts as empty. */
const WITHOUT_TYPES = { "app.json": JSON.stringify(APP), "content_types/.gitkeep": "" };

const DRAFT = { status: "draft", published_at: undefined, data: { title: "A draft" } };

const refusedValue = (name: string, value: unknown, expected: string): [string, () => Files, string] => [
  `${name} = ${JSON.stringify(value)}`,
  () => bundle({ entries: [entry({ data: { title: "a", [name]: value } })] }),
  `entries/posts.ndjson:1: field "${name}" ${expected}`,
];
const refusedData = (what: string, json: string, expected: string): [string, () => Files, string] => [
  what,
  () => bundle({ entries: [entry({ data: "DATA" }).replace('"DATA"', json)] }),
  `entries/posts.ndjson:1: ${expected}`,
];
const refusedLine = (what: string, more: Json, expected: string): [string, () => Files, string] => [
  what,
  () => bundle({ entries: [entry({ id: OTHER }), entry(more)] }),
  `entries/posts.ndjson:2: ${expected}`,
];
const refusedType = (what: string, more: Json, expected: string): [string, () => Files, string] => [
  what,
  () => bundle({ type: more, entries: [] }),
  `content_types/posts.json: ${expected}`,
];
const refusedField = (what: string, more: Json[], expected: string) =>
  refusedType(what, { fields: [...FIELDS, ...more] }, expected);
const refusedApp = (what: string, app: unknown, expected: string): [string, () => Files, string] => [
  what,
  () => ({ ...bundle(), "app.json": typeof app === "string" ? app : JSON.stringify(app) }),
  `app.json: ${expected}`,
];
const refusedFile = (what: string, files: Files, expected: string): [string, () => Files, string] => [
  what,
  () => ({ ...bundle(), ...files }),
  expected,
];

const REFUSED: [string, () => Files, string][] = [
  refusedValue("post_date", "2026-02-30", 'must be a date such as 2026-01-20, not "2026-02-30"'),
  refusedValue("post_date", "2025-02-29", "must be a date"),
  refusedValue("post_date", "0000-01-01", "must be a date"),
  refusedValue("post_date", "2026-1-2", "must be a date"),
  refusedValue("post_date", "2026-01-20T00:00:00Z", "must be a date"),
  refusedValue("post_date", "2026-01-20\n", "must be a date"),
  refusedValue("seen", "2026-01-20T15:30:00", "must be a timestamp with an offset"),
  refusedValue("seen", "2026-01-20", "must be a timestamp"),
  refusedValue("seen", "2026-01-20t15:30:00z", "must be a timestamp"),
  refusedValue("seen", "2026-01-20T24:00:00Z", "must be a timestamp"),
  refusedValue("seen", "2026-02-30T15:30:00Z", "must be a timestamp"),
  refusedValue("seen", "9999-12-31T23:59:59-00:01", "must be a timestamp"),
  refusedValue("seen", "0001-01-01T00:00:00+01:00", "must be a timestamp"),
  refusedValue("seen", "2026-01-20T15:30:00+16:00", "must be a timestamp"),
  refusedValue("post_date", ["2026-01-20"], "must be a date such as 2026-01-20, not an array"),
  refusedValue("seen", ["2026-01-20T15:30:00Z"], "must be a timestamp"),
  refusedValue("kind", ["a"], "must be a string, not an array"),
  refusedValue("body", { html: "" }, "must be a string of HTML, not an object"),
  refusedValue("photo", false, "must be a file name, not false"),
  refusedValue("price", "12", 'must be a number within ±1.797e308, not "12"'),
  refusedValue("sold", 1, "must be true or false, not 1"),
  refusedValue("author_id", "3f2c", 'must be a UUID such as 3f2c1a9e-7b4d-4c1e-9a55-0d6b8f7e2c10, not "3f2c"'),
  refusedValue("tags", "a", 'must be an array in which each element is a string, not "a"'),
  refusedValue("tags", ["a", null], "must be an array in which each element is a string, but element 2 is null"),
  refusedValue("extra", { a: [{ b: "\0" }] }, "must not contain U+0000"),
  refusedValue("extra", { "a\ud800": 1 }, "must not contain U+0000 or half of a surrogate pair"),
  refusedValue("body", "\udc00\ud83d", "must not contain U+0000 or half of a surrogate pair"),
  refusedData("a number too large for a double", '{"title":"a","price":1e400}', 'field "price" must be a number'),
  refusedData(
    "a number with too many digits",
    '{"title":"a","extra":[1e131072]}',
    'field "extra" must not contain a number of more',
  ),
  refusedData(
    "a number with too many digits, a sign and a capital E",
    '{"title":"a","extra":[1, -2.5E+200000]}',
    'field "extra" must not contain a number of more',
  ),
  refusedData(
    "a number with too many decimals",
    '{"title":"a","price":1e-16384}',
    'field "price" must not contain a number of more',
  ),
  refusedData(
    "data nested more than 1,000 levels deep",
    `{"title":"a","extra":${"[".repeat(1001)}${"]".repeat(1001)}}`,
    'field "extra" must not be nested more than 1000 levels deep',
  ),
  refusedData("an unknown field named __proto__", '{"title":"a","__proto__":1}', 'has an unknown field "__proto__"'),
  refusedData("a missing required field", "{}", 'field "title" is required: it must be a string, not nothing'),
  refusedData(
    "a required field that is null",
    '{"title":null}',
    'field "title" is required: it must be a string, not null',
  ),
  refusedData("data that is not an object", "[]", '"data" must be an object, not an array'),
  refusedLine("a missing required field in a draft", { ...DRAFT, data: {} }, 'field "title" is required'),
  refusedLine("an id that is a number", { id: 7 }, '"id" must be a UUID'),
  refusedLine("an id in braces", { id: `{${ID}}` }, '"id" must be a UUID'),
  refusedLine(
    "an id that another entry has in lower case",
    { id: OTHER.toUpperCase() },
    `"id" must be unique: ${OTHER} is already on line 1`,
  ),
  refusedLine("an unknown status", { status: "live" }, '"status" must be "draft" or "published", not "live"'),
  refusedLine(
    "a published entry whose published_at is null",
    { published_at: null },
    '"published_at" must be a timestamp',
  ),
  refusedLine(
    "a draft whose published_at is not a timestamp",
    { ...DRAFT, published_at: "soon" },
    '"published_at" must be a timestamp',
  ),
  refusedLine("a missing created_at", { created_at: undefined }, '"created_at" must be a timestamp'),
  refusedLine("an updated_at that is null", { updated_at: null }, '"updated_at" must be a timestamp'),
  refusedLine("missing data", { data: undefined }, '"data" must be an object, not nothing'),
  refusedLine("an unknown key of an entry", { slug: "x" }, 'has an unknown key "slug"; the keys are id, status'),
  [
    "data of a type without fields",
    () =>
      bundle({
        type: { fields: [], filterable_fields: [], sortable_fields: [] },
        entries: [entry({ data: { a: 1 } })],
      }),
    'entries/posts.ndjson:1: has an unknown field "a"; the type has none',
  ],
  refusedFile(
    "a line that is not valid JSON",
    { "entries/posts.ndjson": '\n{"id":' },
    "entries/posts.ndjson:2: is not valid JSON",
  ),
  refusedFile(
    "a line that is not a JSON object",
    { "entries/posts.ndjson": "[]" },
    "entries/posts.ndjson:1: must be a JSON object",
  ),
  refusedFile(
    "an entries file in Latin-1",
    { "entries/posts.ndjson": Buffer.from([10, 0x22, 0xe4, 0x22]) },
    "entries/posts.ndjson:2: is not valid UTF-8",
  ),
  refusedFile(
    "a type file in Latin-1",
    { "content_types/posts.json": Buffer.from([0xe4]), "entries/posts.ndjson": null },
    "posts.json: is not valid UTF-8",
  ),
  refusedFile(
    "an entries file whose content type is missing",
    { "entries/pots.ndjson": "" },
    "entries/pots.ndjson: belongs to no content type: content_types/pots.json is missing",
  ),
  refusedFile(
    "an entries file with the wrong extension",
    { "entries/posts.json": "" },
    "entries/posts.json: must be named <slug of a content type>.ndjson",
  ),
  refusedFile(
    "a type file with the wrong extension",
    { "content_types/tags.yaml": "" },
    "content_types/tags.yaml: must be named",
  ),
  refusedFile(
    "a type file whose name has a capital letter, although its slug has none",
    { "content_types/Posts.json": typeFile(), "content_types/posts.json": null, "entries/posts.ndjson": null },
    "content_types/Posts.json: must be named <slug of a content type>.json; a slug is 1 to 64 characters from a-z, 0-9, - and _",
  ),
  refusedFile(
    "an entries file whose name has a capital letter",
    { "entries/Posts.ndjson": "", "entries/posts.ndjson": null },
    "entries/Posts.ndjson: must be named <slug of a content type>.ndjson; a slug is 1 to 64 characters from a-z, 0-9, - and _",
  ),
  refusedFile(
    "an entries folder with the wrong name",
    { "entries/posts.ndjson": null, "entry/posts.ndjson": entry() },
    "entry: is not part of a bundle; did you mean entries?",
  ),
  refusedFile(
    "an entries folder whose name has a capital letter",
    { "entries/posts.ndjson": null, "Entries/posts.ndjson": entry() },
    "Entries: is not part of a bundle; did you mean entries?",
  ),
  refusedFile(
    "a content_types folder whose name has a dash",
    { "content_types/posts.json": null, "entries/posts.ndjson": null, "content-types/posts.json": typeFile() },
    "content-types: is not part of a bundle; did you mean content_types?",
  ),
  refusedFile(
    "a file whose name resembles app.json",
    { "Apps.json": "{}" },
    "Apps.json: is not part of a bundle; did you mean app.json?",
  ),
  refusedFile("a folder without app.json", { "app.json": null }, "app.json: is missing"),
  refusedFile(
    "a folder in place of a file",
    { "content_types/posts.json": null, "content_types/posts.json/a": "", "entries/posts.ndjson": null },
    "content_types/posts.json: is a folder, but must be a file",
  ),
  refusedFile(
    "a file in place of a folder",
    { "entries/posts.ndjson": null, entries: entry() },
    "entries: is a file, but must be a folder",
  ),
  refusedFile(
    "an app.json that is not valid JSON",
    { "app.json": '{\n  "key": x\n}' },
    "app.json:2: is not valid JSON: Unexpected token",
  ),
  refusedFile("an empty app.json", { "app.json": "" }, "app.json:1: is not valid JSON"),
  ...[
    ["a trailing comma", '{\n  "slug": "posts",\n}', 3],
    ["a missing comma between two keys", '{\r\n  "slug": "posts"\r\n  "name": "Posts"\r\n}', 3],
    ["a missing end", '{\n  "fields": [\n    {}', 3],
    ["an extra closing brace", '{\n  "fields": []\n}\n}', 4],
    ["a comment", '{\n  // the slug\n  "slug": "posts"\n}', 2],
    ["an unterminated string", '{\n  "slug": "po[sts,\n  "name": "Posts"\n}', 2],
    ["brackets nested very deep", `${"[".repeat(200_000)}\n${"[]".repeat(200_000)}\n}`, 2],
    ["mismatched brackets", '{\n  "name": "a \\"[",\n  "fields": [\n  }\n}', 4],
  ].map(([what, json, line]) =>
    refusedFile(
      `a type with ${what}`,
      { "content_types/posts.json": String(json), "entries/posts.ndjson": null },
      `content_types/posts.json:${line}: is not valid JSON`,
    ),
  ),
  refusedApp("an app.json that is not an object", "[]", "must be an object, not an array"),
  refusedApp(
    "an app key with a dot",
    { ...APP, key: "a.b" },
    '"key" must be 1 to 128 characters from A-Z, a-z, 0-9, - and _',
  ),
  refusedApp("an app without a name", { key: "a" }, '"name" is missing: it must be a string'),
  refusedApp("an app name with U+0000", { ...APP, name: "\0" }, "must not contain U+0000"),
  refusedApp(
    "an unknown key in app.json",
    { ...APP, media_url: "" },
    'has an unknown key "media_url"; the keys are key, name, media_base_url',
  ),
  refusedApp("the key __proto__ in app.json", '{"key":"a","name":"","__proto__":1}', 'has an unknown key "__proto__"'),
  refusedApp("a key twice in app.json", '{"key":"a","name":"",\n"key":"a"}', 'has the key "key" again on line 2'),
  [
    "a key twice in a type",
    () => {
      const files = bundle();
      const type = String(files["content_types/posts.json"]).replace("{", '{"name":"x",');
      return { ...files, "content_types/posts.json": type };
    },
    'content_types/posts.json: has the key "name" again on line 1',
  ],
  refusedData("a field twice", '{"title":"a: b","title":"a: b"}', 'has the key "title" twice'),
  refusedData(
    "a key twice deep in a value",
    '{"title":"\\":","extra":{"a":[{"b":1},{"b":1,"\\u0062":2}]}}',
    'has the key "b" twice',
  ),
  refusedApp(
    "a media address without a scheme",
    { ...APP, media_base_url: "/media" },
    '"media_base_url" must be an absolute http or https address without ? and #, not "/media"',
  ),
  refusedApp("a media address with a query", { ...APP, media_base_url: "https://a?b" }, '"media_base_url" must be'),
  refusedApp(
    "a media address with a fragment",
    { ...APP, media_base_url: "https://a/b#c" },
    '"media_base_url" must be',
  ),
  refusedApp(
    "a media address with a control character",
    { ...APP, media_base_url: "https://a/\u0001" },
    '"media_base_url" must be an absolute http or https address without ? and #, not "https://a/\\u0001"',
  ),
  refusedApp("a media address with the scheme ftp", { ...APP, media_base_url: "ftp://a" }, '"media_base_url" must be'),
  refusedApp(
    "a media address with an impossible port",
    { ...APP, media_base_url: "https://a:99999" },
    '"media_base_url" must be',
  ),
  refusedApp("a media address without a host", { ...APP, media_base_url: "https:///a" }, '"media_base_url" must be'),
  refusedType(
    "a slug that differs from the file name",
    { slug: "post" },
    '"slug" must be "posts" like the file name, not "post"',
  ),
  refusedType("a slug that is a number", { slug: 7 }, '"slug" must be 1 to 64 characters from a-z'),
  refusedType("a slug in upper case", { slug: "Posts" }, '"slug" must be 1 to 64 characters from a-z'),
  refusedType(
    "an unknown key of a type",
    { searchable_fields: [] },
    'has an unknown key "searchable_fields"; the keys are',
  ),
  refusedType(
    "a type without sortable_fields",
    { sortable_fields: undefined },
    '"sortable_fields" is missing: it must be an array of field names',
  ),
  refusedType("a per_page above 100", { per_page: 101 }, '"per_page" must be a whole number from 1 to 100, not 101'),
  refusedType("a per_page that is not a whole number", { per_page: 1.5 }, '"per_page" must be a whole number'),
  refusedType("a position that exceeds a 32-bit integer", { position: 2 ** 31 }, '"position" must be a 32-bit integer'),
  refusedType("a filter on rich text", { filterable_fields: ["body"] }, '"filterable_fields" must not contain "body"'),
  refusedType("a filter on id", { filterable_fields: ["id"] }, '"filterable_fields" must not contain "id"'),
  refusedType(
    "a field named twice in filterable_fields",
    { filterable_fields: ["title", "title"] },
    '"filterable_fields" contains "title" twice',
  ),
  refusedType(
    "a sort on a relation",
    { sortable_fields: ["author_id"] },
    '"sortable_fields" must not contain "author_id"',
  ),
  refusedType("a sort on a multiple field", { sortable_fields: ["tags"] }, '"sortable_fields" must not contain "tags"'),
  refusedType(
    "a timestamp in summary_fields",
    { summary_fields: ["created_at"] },
    '"summary_fields" must not contain "created_at"',
  ),
  refusedType(
    "an unknown field in summary_fields",
    { summary_fields: ["tittle"] },
    '"summary_fields" must not contain "tittle": it can contain the fields of this type',
  ),
  refusedType("a default sort by an unknown field", { default_sort: "-nope" }, '"default_sort" must be one of'),
  refusedType("a default sort with two dashes", { default_sort: "--title" }, '"default_sort" must be one of'),
  refusedType("a field that is a name", { fields: [...FIELDS, "name"] }, '"fields[11]" must be an object, not "name"'),
  refusedType("a field that is null", { fields: [...FIELDS, null] }, '"fields[11]" must be an object, not null'),
  refusedType(
    "more than 1,000 fields",
    { fields: Array.from({ length: 1_001 }, (_, index) => field(`field_${index}`, "text")) },
    '"fields" must be an array of at most 1,000 fields, not an array',
  ),
  refusedField("a field named search", [field("search", "text")], 'field "search" must have another name'),
  refusedField(
    "a field name with a capital letter",
    [field("Name", "text")],
    '"fields[11].name" must be 1 to 63 characters from a-z',
  ),
  refusedField("two fields with the same name", [field("title", "text")], 'field "title" is defined twice'),
  refusedField(
    "a field named like the address of a media field",
    [field("photo_url", "text")],
    'field "photo_url" must have another name: it is reserved for the address of the media field "photo"',
  ),
  refusedField("an unknown field type", [field("a", "txet")], '"fields[11].type" must be one of text, rich_text'),
  refusedField(
    "a searchable number",
    [field("a", "number", { searchable: true })],
    'field "a" must not be searchable: only text, rich_text, select can be',
  ),
  refusedField(
    "a multiple date",
    [field("a", "date", { multiple: true })],
    'field "a" must not be multiple: only select, media, relation, text can be',
  ),
  refusedField("a relation without a target", [field("a", "relation")], 'field "a" must have a "target"'),
  refusedField(
    "a relation whose target is not a slug",
    [field("a", "relation", { target: "A B" })],
    '"fields[11].target" must be 1 to 64',
  ),
  refusedField("a text with a target", [field("a", "text", { target: "posts" })], 'field "a" must have no "target"'),
  refusedField(
    "an unknown key of a field",
    [field("a", "text", { requierd: true })],
    '"fields[11]" has an unknown key "requierd"',
  ),
];

describe.each(["postgres", "embedded"] as const)("import into %s", (kind) => {
  let store: Store;
  let database: Database;

  beforeAll(async () => {
    store = await openStore(kind);
    database = store.database;
  });
  afterAll(() => store.close());
  beforeEach(() => database.execute("DELETE FROM precast.apps"));

  const run = (files: Files, options: Partial<ImportOptions> = {}) =>
    importBundle(database, writeBundle(files), { prune: false, dryRun: false, ...options });
  const rows = (query: string) => database.query(sql(query));
  const dataOf = async (id = ID) => {
    const [row] = await database.query(
      sql("SELECT data::text, rich::text FROM precast.entries WHERE id = $1::uuid", [id]),
    );
    return row;
  };
  const snapshot = () =>
    rows(`SELECT to_jsonb(e)::text FROM precast.entries e UNION ALL SELECT to_jsonb(f)::text FROM precast.fields f
      UNION ALL SELECT to_jsonb(t)::text FROM precast.content_types t UNION ALL SELECT to_jsonb(a)::text FROM precast.apps a
      ORDER BY 1`);
  /** The problems that the import reports of a bundle that it refuses. */
  const refusal = (files: Files, options: Partial<ImportOptions> = {}) => refusalOf(writeBundle(files), options);
  const refusalOf = async (folder: string, options: Partial<ImportOptions> = {}) => {
    const ran = importBundle(database, folder, { prune: false, dryRun: false, ...options });
    const error = await ran.catch((thrown: unknown) => thrown);
    if (!(error instanceof ImportProblems)) throw error;
    return error.problems.map(describeProblem);
  };

  test("creates the app, types, fields and entries of a bundle", async () => {
    const report = await run(bundle());
    expect(report).toEqual({
      app: "shop",
      types: { created: 1, updated: 0, unchanged: 0, deleted: 0 },
      fields: { created: 11, updated: 0, unchanged: 0, deleted: 0 },
      entries: { created: 2, updated: 0, unchanged: 0, deleted: 0 },
      missingTargets: [{ type: "posts", field: "author_id", target: "authors" }],
      warnings: [],
    });
    expect(await rows("SELECT key, name, media_base_url FROM precast.apps")).toEqual([Object.values(APP)]);
    expect(
      await rows(
        "SELECT slug, position::text, published::text, default_sort, per_page::text FROM precast.content_types",
      ),
    ).toEqual([["posts", "3", "true", "-published_at", "20"]]);
    expect(await rows("SELECT name FROM precast.fields ORDER BY position")).toEqual(FIELDS.map(({ name }) => [name]));
    expect(
      await rows("SELECT id::text, status, (published_at IS NULL)::text FROM precast.entries ORDER BY id"),
    ).toEqual([
      [ID, "published", "false"],
      [OTHER, "draft", "true"],
    ]);
    const [data, rich] = (await dataOf()) ?? [];
    expect(JSON.parse(data ?? "")).toEqual({ ...omit(DATA, "body"), seen: "2026-01-20T13:30:00.123+00:00" });
    expect(JSON.parse(rich ?? "")).toEqual({ body: DATA.body });
  });

  test("changes nothing when the same bundle is imported again, with or without --prune", async () => {
    await run(bundle());
    const before = await snapshot();
    const report = await run(bundle());
    expect([report.types, report.fields, report.entries].map(({ unchanged }) => unchanged)).toEqual([1, 11, 2]);
    expect(await snapshot()).toEqual(before);
    expect((await run(bundle(), { prune: true })).entries).toEqual({
      created: 0,
      updated: 0,
      unchanged: 2,
      deleted: 0,
    });
    expect(await snapshot()).toEqual(before);
  });

  test.each([1_000, 2])("updates the database's row estimate of the entries table after %i entries", async (count) => {
    const entries = Array.from({ length: count }, (_, number) => entry({ id: uuid(number) }));
    await database.execute("VACUUM ANALYZE precast.entries");
    await run(bundle({ entries }));
    const [[known] = []] = await rows(
      "SELECT reltuples::int::text FROM pg_class WHERE oid = 'precast.entries'::regclass",
    );
    expect(Number(known)).toBeGreaterThanOrEqual(count);
  });

  test("leaves no rows in the pending lists of GIN indexes, which every search would read", async () => {
    const entries = Array.from({ length: 1_000 }, (_, number) => entry({ id: uuid(number) }));
    await run(bundle({ entries }));
    const pending = await rows(
      `SELECT gin_clean_pending_list(indexrelid)::text FROM pg_stat_user_indexes
       WHERE indexrelname IN ('entry_words_by_term', 'terms_by_part', 'entries_by_texts', 'entries_by_value')`,
    );
    expect(pending).toEqual([["0"], ["0"], ["0"], ["0"]]);
  });

  // The embedded database has one connection.
  if (kind === "postgres")
    test("merges the pending lists of GIN indexes on a second connection while it writes", async () => {
      const counting = new URL(store.url as string);
      counting.searchParams.set("options", "-c track_functions=all");
      const own = await openDatabase({ url: counting.href, dataDir: work, queryTimeout: null, connections: 2 });
      const entries = Array.from({ length: 1_000 }, (_, number) => entry({ id: uuid(number) }));
      await importBundle(own, writeBundle(bundle({ entries })), { prune: false, dryRun: false });
      await own.close();
      // Once while the import writes, and once at its end.
      await until("both to be told", async () => {
        const [row] = await rows("SELECT calls::text FROM pg_stat_user_functions WHERE funcname = 'take_in_pending'");
        return row?.[0] === "2";
      });
    });

  if (kind === "postgres")
    test("succeeds although another session keeps it from updating the statistics", async () => {
      const other = await openDatabase({ url: store.url, dataDir: work, queryTimeout: null, connections: 1 });
      const entries = Array.from({ length: 1_000 }, (_, number) => entry({ id: uuid(number) }));
      await other.transaction("write", async (session) => {
        await session.execute("LOCK TABLE precast.entries IN SHARE UPDATE EXCLUSIVE MODE");
        expect((await run(bundle({ entries }))).entries.created).toBe(1_000);
      });
      await other.close();
    });

  test("writes only the entries that differ", async () => {
    await run(bundle());
    const before = await rows(`SELECT changed_in::text FROM precast.entries WHERE id = '${OTHER}'`);
    const report = await run(
      bundle({ entries: [entry({ status: "draft", published_at: null }), entry({ id: OTHER, ...DRAFT })] }),
    );
    expect(report.entries).toEqual({ created: 0, updated: 1, unchanged: 1, deleted: 0 });
    expect(await rows(`SELECT status, published_at::text FROM precast.entries WHERE id = '${ID}'`)).toEqual([
      ["draft", null],
    ]);
    expect(await rows(`SELECT changed_in::text FROM precast.entries WHERE id = '${OTHER}'`)).toEqual(before);
  });

  test("replaces the data of an entry, rich text included", async () => {
    await run(bundle());
    await run(bundle({ entries: [entry({ data: { title: "only this" } })] }));
    expect(await dataOf()).toEqual(['{"title": "only this"}', "{}"]);
  });

  test("keeps the values of fields that a newer bundle lacks, also in the entries that it changes", async () => {
    await run(bundle());
    const [before] = await rows(`SELECT (data - 'title')::text, rich::text FROM precast.entries WHERE id = '${ID}'`);
    const fewer = bundle({
      type: { fields: [FIELDS[0]], filterable_fields: [], sortable_fields: [] },
      entries: [entry({ data: { title: "new" } }), entry({ id: uuid(7), data: { title: "added" } })],
    });
    expect((await run(fewer)).entries).toEqual({ created: 1, updated: 1, unchanged: 0, deleted: 0 });
    expect(
      await rows(`SELECT data ->> 'title', (data - 'title')::text, rich::text FROM precast.entries WHERE id = '${ID}'`),
    ).toEqual([["new", ...(before ?? [])]]);
    expect((await run(fewer)).entries).toEqual({ created: 0, updated: 0, unchanged: 2, deleted: 0 });
  });

  test("keeps fields, entries and types that a newer bundle lacks, such fields after those of the bundle", async () => {
    await run(bundle());
    const fewer = bundle({
      type: { fields: [FIELDS[3], FIELDS[0]], filterable_fields: [], sortable_fields: [] },
      entries: [],
    });
    for (let time = 0; time < 2; time++) {
      await run(fewer);
      const names = FIELDS.map(({ name }) => name);
      const [title, body, select, number, ...others] = names;
      expect(await rows("SELECT name, position::text FROM precast.fields ORDER BY fields.position")).toEqual(
        [number, title, body, select, ...others].map((name, position) => [name, String(position)]),
      );
    }
    expect(await rows("SELECT count(*)::text FROM precast.entries")).toEqual([["2"]]);
    await run({ "app.json": JSON.stringify(APP) });
    expect(await rows("SELECT count(*)::text FROM precast.content_types")).toEqual([["1"]]);
  });

  test("--prune deletes entries, fields and types of the imported app only", async () => {
    await run({ ...bundle(), "app.json": JSON.stringify({ ...APP, key: "other" }) });
    const other = await rows("SELECT count(*)::text FROM precast.entries");
    await run({ ...bundle(), "content_types/tags.json": typeFile({ slug: "tags" }), "entries/tags.ndjson": entry() });
    const fewer = bundle({
      type: { fields: FIELDS.slice(0, 4), filterable_fields: [], sortable_fields: [] },
      entries: [entry({ id: OTHER, data: { title: "a" } })],
    });
    const report = await run(fewer, { prune: true });
    expect(report.types).toEqual({ created: 0, updated: 1, unchanged: 0, deleted: 1 });
    expect(report.fields).toEqual({ created: 0, updated: 0, unchanged: 4, deleted: 18 });
    expect(report.entries).toEqual({ created: 0, updated: 1, unchanged: 0, deleted: 2 });
    const pruned = await contents("shop");
    await database.execute("DELETE FROM precast.apps WHERE key = 'shop'");
    await run(fewer);
    expect(await contents("shop")).toEqual(pruned);
    expect(
      await rows(`SELECT count(*)::text FROM precast.entries WHERE content_type_id IN (SELECT t.id FROM
      precast.content_types t JOIN precast.apps a ON a.id = app_id WHERE key = 'other')`),
    ).toEqual(other);
  });

  const contents = (key: string) =>
    rows(`SELECT t.slug, e.id::text, e.data::text, e.rich::text, w.words FROM precast.apps a JOIN precast.content_types t
      ON a.id = t.app_id LEFT JOIN precast.entries e ON e.content_type_id = t.id
      LEFT JOIN precast.entry_words w ON w.content_type_id = t.id AND w.id = e.id WHERE a.key = '${key}' ORDER BY 1, 2`);

  test("--prune deletes all entries of a type that has no entries file", async () => {
    await run(bundle());
    const report = await run({ ...bundle(), "entries/posts.ndjson": null }, { prune: true });
    expect(report.entries).toEqual({ created: 0, updated: 0, unchanged: 0, deleted: 2 });
  });

  test("--prune deletes all types when content_types is empty, and refuses a bundle in which it is missing", async () => {
    await run(bundle());
    const full = await snapshot();
    expect(await refusal({ "app.json": JSON.stringify(APP) }, { prune: true })).toEqual([
      "content_types: is missing; with --prune that would delete all types and entries of the app: if this is intended, create an empty folder",
    ]);
    expect(await snapshot()).toEqual(full);
    const { types, entries } = await run(WITHOUT_TYPES, { prune: true });
    expect([types.deleted, entries.deleted]).toEqual([1, 2]);
  });

  test.each(["content_types", "entries", "entries/posts.ndjson"])(
    "--prune refuses a bundle in which %s is a dangling link, and deletes nothing",
    async (part) => {
      await run(bundle());
      const full = await snapshot();
      const folder = writeBundle(bundle());
      rmSync(join(folder, part), { recursive: true, force: true });
      symlinkSync(join(folder, "unmounted"), join(folder, part));
      const error = await importBundle(database, folder, { prune: true, dryRun: false }).catch(
        (thrown: unknown) => thrown,
      );
      expect((error as ImportProblems).problems.map(describeProblem)).toContain(
        `${part}: is a broken symbolic link: mount its target, or remove the link`,
      );
      expect(await snapshot()).toEqual(full);
    },
  );

  test("ignores other files and folders beside the parts of a bundle", async () => {
    const others = { "README.md": "", ".git/config": "", "media/a.png": "", "types/posts.json": "{" };
    expect((await run({ ...bundle(), ...others })).entries.created).toBe(2);
  });

  test("a dry run reports what the import would do and changes nothing", async () => {
    const empty = await snapshot();
    const planned = await run(bundle(), { dryRun: true });
    expect(await snapshot()).toEqual(empty);
    expect(await run(bundle())).toEqual(planned);
    const full = await snapshot();
    const pruned = await run(WITHOUT_TYPES, { prune: true, dryRun: true });
    expect([pruned.types.deleted, pruned.fields.deleted, pruned.entries.deleted]).toEqual([1, 11, 2]);
    expect(await snapshot()).toEqual(full);
  });

  test("imports nothing when one line of many is invalid", async () => {
    await run(bundle());
    const before = await snapshot();
    const lines = Array.from({ length: 1200 }, (_, index) => entry({ id: uuid(index), data: { title: "new" } }));
    lines[1100] = entry({ data: { title: 5 } });
    expect(await refusal(bundle({ entries: lines }))).toEqual([
      'entries/posts.ndjson:1101: field "title" must be a string, not 5',
    ]);
    expect(await snapshot()).toEqual(before);
  });

  test("imports many entries, and reports all of them as done in the end", async () => {
    const lines = Array.from({ length: 1200 }, (_, index) =>
      entry({ id: uuid(index), data: { title: `Title ${index}` } }),
    );
    const seen: object[] = [];
    const report = await run(bundle({ entries: lines }), { onProgress: (progress) => void seen.push(progress) });
    expect(report.entries.created).toBe(1200);
    expect(seen.at(-1)).toEqual({ done: 1200, total: 1200 });
  });

  test("refuses a line of more than 64 MiB, and reads those behind it", async () => {
    const [line, long] = [entry(), Buffer.alloc(64 * 2 ** 20 + 1, " ")];
    const entries = Buffer.concat([Buffer.from(`${line}\n`), long, Buffer.from("\nx\n")]);
    expect(await refusal({ ...bundle(), "entries/posts.ndjson": entries })).toEqual([
      "entries/posts.ndjson:2: is longer than 64 MiB",
      expect.stringMatching(/^entries\/posts\.ndjson:3: is not valid JSON/),
    ]);
    const longest = Buffer.concat([long.subarray(line.length + 1), Buffer.from(line)]);
    expect((await run({ ...bundle(), "entries/posts.ndjson": longest })).entries.created).toBe(1);
  });

  test("lists the first 100 problems and counts the rest", async () => {
    const lines = Array.from({ length: 130 }, (_, index) => entry({ id: uuid(index), [`key_${index}`]: 1 }));
    const error = await run(bundle({ entries: ["x", ...lines] })).catch((thrown) => thrown);
    expect(error.problems).toHaveLength(100);
    expect(error.more).toBe(31);
    expect(error.message).toContain("entries/posts.ndjson:1: is not valid JSON");
    expect(error.message).toMatch(/\nand 31 more$/);
  });

  test("lists a problem that many lines or files have once, with its first places and their number", async () => {
    const dates = Array.from({ length: 1_234 }, (_, index) =>
      entry({ id: uuid(index), data: { title: "a", post_date: `${index}.1.2026` } }),
    );
    const wrong = { description: undefined };
    const others = {
      "content_types/a.json": typeFile({ slug: "a", ...wrong }),
      "content_types/b.json": typeFile(wrong),
    };
    const lines = ["a", entry({ id: OTHER }), "b", entry({ id: OTHER, data: {} }), ...dates, "c"];
    expect(await refusal({ ...bundle({ entries: lines }), ...others })).toEqual([
      'content_types/a.json: "description" is missing: it must be a string (in 2 files: content_types/a.json, content_types/b.json)',
      'content_types/b.json: "slug" must be "b" like the file name, not "posts"',
      `entries/posts.ndjson:1: is not valid JSON: Unexpected token 'a', "a" is not valid JSON (on 3 lines: 1, 3, 1239)`,
      'entries/posts.ndjson:4: field "title" is required: it must be a string, not nothing',
      'entries/posts.ndjson:5: field "post_date" must be a date such as 2026-01-20, not "0.1.2026" (on 1,234 lines: 5, 6, 7, 8, 9, …)',
    ]);
  });

  test("checks the entries of a type that is wrong, by what stays true when it is corrected", async () => {
    const fields = [
      field("title", "text", { required: true }),
      field("price", "number"),
      field("tags", "text", { multipel: true }),
      field("day", "dat"),
      { ...field("sold", "boolean"), required: undefined },
      field("size", "number"),
      field("size", "text"),
    ];
    const data = { tags: ["a"], day: 1, sold: 1, size: "L", price: "7", colour: "red" };
    const lists = { filterable_fields: [], sortable_fields: [], summary_fields: null };
    const value = 'entries/posts.ndjson:1: field "price" must be a number within ±1.797e308, not "7"';
    const required = 'entries/posts.ndjson:1: field "title" is required: it must be a string, not nothing';
    const id = expect.stringContaining('entries/posts.ndjson:1: "id" must be a UUID');
    const problems = async (type: Json) =>
      (await refusal(bundle({ type: { ...lists, ...type }, entries: [entry({ id: 1, data })] }))).filter((problem) =>
        problem.startsWith("entries/"),
      );
    // Of the two fields named `size` one has a wrong name: it may be `colour`.
    expect(await problems({ fields })).toEqual([id, required, value]);
    const unknown = expect.stringContaining('has an unknown field "colour"; the fields are title, price');
    const size = expect.stringContaining('field "size" must be a number');
    expect(await problems({ fields: fields.slice(0, 6) })).toEqual([id, unknown, required, value, size]);
    expect(await problems({ fields: [...fields.slice(0, 5), field("Colour", "text")] })).toEqual([id, required, value]);
    expect(await problems({ fields: {} })).toEqual([id]);
    const broken = { ...bundle({ entries: [entry({ id: 1, data })] }), "content_types/posts.json": "{" };
    expect((await refusal(broken)).slice(1)).toEqual([id]);
    expect((await refusal({ ...broken, "content_types/posts.json": null })).slice(1)).toEqual([id]);
    const twice = typeFile({ fields }).replace('"fields"', '"fields":[],"fields"');
    expect((await refusal({ ...broken, "content_types/posts.json": twice })).at(-1)).toEqual(id);
  });

  test("stores every digit of a number", async () => {
    const digits =
      '{"title":"a","price":9007199254740993,"extra":{"big":123456789012345678901234567890,"small":0.1000,"most":[1e131071,1e-16383]}}';
    await run(bundle({ entries: [entry({ data: "DATA" }).replace('"DATA"', digits)] }));
    const [data] = (await dataOf()) ?? [];
    expect(data).toContain('"price": 9007199254740993');
    expect(data).toContain('"big": 123456789012345678901234567890');
    expect(data).toContain('"small": 0.1000');
    expect(data).toContain(`"most": [1${"0".repeat(131_071)}, 0.${"0".repeat(16_382)}1]`);
  });

  test("reads ids in any case, and stores them in lower case", async () => {
    await run(
      bundle({ entries: [entry({ id: OTHER.toUpperCase(), data: { title: "a", author_id: ID.toUpperCase() } })] }),
    );
    expect(JSON.parse((await dataOf(OTHER))?.[0] ?? "")).toEqual({ title: "a", author_id: ID });
    expect(
      (await run(bundle({ entries: [entry({ id: OTHER, data: { title: "a", author_id: ID } })] }))).entries.unchanged,
    ).toBe(1);
  });

  test("stores keys such as __proto__ and constructor like any other key", async () => {
    const type = typeFile({
      slug: "constructor",
      fields: [field("constructor", "text"), field("extra", "json")],
      filterable_fields: [],
      sortable_fields: [],
    });
    const extra = '{"__proto__":{"x":1},"constructor":null,"toString":2}';
    await run({
      "app.json": JSON.stringify(APP),
      "content_types/constructor.json": type,
      "entries/constructor.ndjson": entry({ data: "DATA" }).replace('"DATA"', `{"extra":${extra}}`),
    });
    const [data] = (await dataOf()) ?? [];
    expect(data).toBe('{"extra": {"toString": 2, "__proto__": {"x": 1}, "constructor": null}}');
  });

  test.each([
    ["2026-01-20T15:30:00+02:00", "2026-01-20 13:30:00+00"],
    ["2026-01-20T15:30Z", "2026-01-20 15:30:00+00"],
    ["2026-01-20T15:30:00.9999999Z", "2026-01-20 15:30:00.999+00"],
    ["2026-01-01T00:00:00.1-05:45", "2026-01-01 05:45:00.1+00"],
    ["0001-01-01T00:00:00Z", "0001-01-01 00:00:00+00"],
    ["0099-02-28T23:59:59.123456+15:59", "0099-02-28 08:00:59.123+00"],
    ["9999-12-31T23:59:59.9999Z", "9999-12-31 23:59:59.999+00"],
    ["2024-02-29T00:00:00Z", "2024-02-29 00:00:00+00"],
  ])("stores the timestamp %s as %s", async (written, stored) => {
    await run(bundle({ entries: [entry({ published_at: written, created_at: written, updated_at: written })] }));
    const utc = (column: string) => `(${column} AT TIME ZONE 'UTC')::text || '+00'`;
    const columns = ["published_at", "created_at", "updated_at"].map(utc).join(", ");
    expect(await rows(`SELECT ${columns} FROM precast.entries`)).toEqual([[stored, stored, stored]]);
  });

  test("changes the type of a field together with its entries", async () => {
    await run(bundle());
    const typed = (name: string, type: string) => FIELDS.map((one) => (one.name === name ? { ...one, type } : one));
    await run(
      bundle({ type: { fields: typed("price", "text") }, entries: [entry({ data: { title: "a", price: "12 €" } })] }),
    );
    expect(JSON.parse((await dataOf())?.[0] ?? "")).toEqual({ title: "a", price: "12 €" });
    const rich = typed("title", "rich_text");
    await run(
      bundle({
        type: { fields: rich, filterable_fields: [], sortable_fields: [] },
        entries: [entry({ data: { title: "<p>a</p>" } })],
      }),
    );
    expect(await dataOf()).toEqual(["{}", '{"title": "<p>a</p>"}']);
    await run(bundle());
    expect(JSON.parse((await dataOf())?.[1] ?? "")).toEqual({ body: DATA.body });
  });

  test("refuses a media field whose _url companion is a field that an earlier bundle left, unless --prune is given", async () => {
    const plain = { filterable_fields: [], sortable_fields: [], summary_fields: [], default_sort: null };
    await run(bundle({ type: { ...plain, fields: [field("photo_url", "text")] }, entries: [] }));
    const newer = bundle({ type: { ...plain, fields: [field("photo", "media")] }, entries: [] });
    expect(await refusal(newer)).toEqual([
      'content_types/posts.json: field "photo_url" has the name that is reserved for the address of the media field "photo"; the database still has "photo_url", which this bundle lacks: import with --prune to delete it',
    ]);
    expect((await run(newer, { prune: true })).fields).toEqual({ created: 1, updated: 0, unchanged: 0, deleted: 1 });
    const older = bundle({ type: { ...plain, fields: [field("photo_url", "text")] }, entries: [] });
    expect(await refusal(older)).toEqual([
      expect.stringContaining('the database still has "photo", which this bundle'),
    ]);
  });

  test("imports of one app at the same time wait for each other", async () => {
    const reports = await Promise.all([run(bundle()), run(bundle()), run(bundle())]);
    expect(reports.map(({ entries }) => entries.created).sort()).toEqual([0, 0, 2]);
    expect(reports.map(({ entries }) => entries.unchanged).sort()).toEqual([0, 2, 2]);
  });

  test("accepts a BOM, blank lines, CRLF, U+2028 and hidden files", async () => {
    const lines = `\ufeff${entry({ data: { title: "a\u2028b" } })}\r\n\r\n  \n${entry({ id: OTHER, ...DRAFT })}`;
    const report = await run({
      ...bundle(),
      "app.json": `\ufeff${JSON.stringify(APP)}`,
      "entries/posts.ndjson": lines,
      "entries/.DS_Store": "",
    });
    expect(report.entries.created).toBe(2);
    expect(JSON.parse((await dataOf())?.[0] ?? "")).toEqual({ title: "a\u2028b" });
  });

  test("takes an empty text and an empty array for values of required fields", async () => {
    const type = { fields: FIELDS.map((one) => (one.name === "tags" ? { ...one, required: true } : one)) };
    await run(bundle({ type, entries: [entry({ data: { title: "", tags: [] } })] }));
    expect(JSON.parse((await dataOf())?.[0] ?? "")).toEqual({ title: "", tags: [] });
  });

  test("accepts unusual but valid values, app keys and types", async () => {
    const deep = `${"[".repeat(1000)}${"]".repeat(1000)}`;
    const data = `{"title":"","tags":[],"extra":${deep},"price":-1.7976931348623157e308,"seen":null,"photo":"a/b ä.png","body":"\\ud83d\\ude00"}`;
    await run(bundle({ entries: [entry({ data: "DATA" }).replace('"DATA"', data)] }));
    expect(await rows("SELECT count(*)::text FROM precast.entries")).toEqual([["1"]]);
    await run({
      "app.json": JSON.stringify({ key: "A-b_1", name: "" }),
      "content_types/search.json": typeFile({
        slug: "search",
        fields: [],
        filterable_fields: ["published_at"],
        sortable_fields: ["updated_at"],
        summary_fields: null,
        default_sort: "created_at",
      }),
    });
  });

  test.each(REFUSED)("refuses %s", async (_, files, expected) => {
    const problems = await refusal(files());
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(expected);
    expect(problems[0]).not.toContain("\n");
    expect(await rows("SELECT key FROM precast.apps")).toEqual([]);
  });

  test("reports unknown keys, wrong types of values and broken rules of a content type at once", async () => {
    const fields = [
      field("price", "number", { searchable: true, unit: "EUR" }),
      field("sold", "boolean", { multiple: true }),
      field("photo", "media", { target: "posts" }),
      field("author_id", "relation"),
      field("body", "rich_text", { label: 7 }),
    ];
    const type = { fields, colour: "red", per_page: 0, filterable_fields: ["sold", "nope"], sortable_fields: ["body"] };
    expect(await refusal(bundle({ type, entries: [] }))).toEqual([
      'content_types/posts.json: "per_page" must be a whole number from 1 to 100, not 0',
      'content_types/posts.json: "fields[4].label" must be a string, not 7',
      expect.stringContaining('content_types/posts.json: has an unknown key "colour"; the keys are'),
      expect.stringContaining('content_types/posts.json: "fields[0]" has an unknown key "unit"; the keys are'),
      'content_types/posts.json: field "price" must not be searchable: only text, rich_text, select can be',
      'content_types/posts.json: field "sold" must not be multiple: only select, media, relation, text can be',
      'content_types/posts.json: field "photo" must have no "target": only a relation has one',
      'content_types/posts.json: field "author_id" must have a "target": the slug of the content type that it relates to',
      expect.stringContaining('content_types/posts.json: "filterable_fields" must not contain "nope"'),
      expect.stringContaining('content_types/posts.json: "sortable_fields" must not contain "body"'),
    ]);
  });

  test("reports a refused field once, and not again for the lists of its type that name it", async () => {
    const fields = [
      field("Title", "text"),
      field("colour", "txet"),
      field("tags", "select", { multiple: "yes" }),
      { ...field("size", "number"), name: null },
    ];
    const lists = ["Title", "colour", "tags", "size"];
    const type = {
      fields,
      filterable_fields: lists,
      sortable_fields: lists,
      summary_fields: lists,
      default_sort: "-size",
    };
    expect(await refusal(bundle({ type, entries: [] }))).toEqual([
      expect.stringContaining('"fields[0].name" must be 1 to 63 characters from a-z, 0-9 and _'),
      expect.stringContaining('"fields[1].type" must be one of text, rich_text'),
      expect.stringContaining('"fields[2].multiple" must be true or false, not "yes"'),
      expect.stringContaining('"fields[3].name" must be 1 to 63 characters from a-z, 0-9 and _'),
    ]);
    expect(await refusal(bundle({ type: { ...type, fields: {} }, entries: [] }))).toEqual([
      'content_types/posts.json: "fields" must be an array of fields, not an object',
    ]);
  });

  test.each(["app.json", "content_types", "content_types/posts.json", "entries", "entries/posts.ndjson"])(
    "refuses a bundle in which %s is a link that leads out of it, and reads nothing there",
    async (part) => {
      const outside = writeBundle({ ...bundle(), "app.json": "secret", "entries/posts.ndjson": "secret" });
      const folder = writeBundle(bundle());
      rmSync(join(folder, part), { recursive: true });
      symlinkSync(join(outside, part), join(folder, part));
      const problems = await refusalOf(folder);
      expect(problems[0]).toBe(
        `${part}: is a symbolic link that leads out of the bundle: replace it with a copy of what it leads to`,
      );
      expect(problems.join("\n")).not.toContain("secret");
    },
  );

  test("follows a link to the bundle, and links that stay in it", async () => {
    const folder = writeBundle({ ...bundle(), "entries/posts.ndjson": null, "all/posts.ndjson": entry() });
    renameSync(join(folder, "content_types/posts.json"), join(folder, "posts.json"));
    symlinkSync("../posts.json", join(folder, "content_types/posts.json"));
    symlinkSync("all", join(folder, "entries"));
    symlinkSync(folder, `${folder}-link`);
    const options = { prune: false, dryRun: false };
    expect((await importBundle(database, `${folder}-link`, options)).entries.created).toBe(1);
  });

  test("refuses a named pipe, a device and a socket in the place of a part, and does not wait for them", async () => {
    const files = { ...bundle(), "entries/posts.ndjson": null, "content_types/tags.json": typeFile({ slug: "tags" }) };
    const folder = writeBundle(files);
    execFileSync("mkfifo", [join(folder, "entries")]);
    rmSync(join(folder, "app.json"));
    const server = createServer().listen(join(folder, "app.json"));
    await once(server, "listening");
    rmSync(join(folder, "content_types/tags.json"));
    execFileSync("mkfifo", [join(folder, "content_types/tags.json")]);
    expect(await refusalOf(folder)).toEqual([
      "app.json: is a socket, but must be a file",
      "content_types/tags.json: is a named pipe, but must be a file",
      "entries: is a named pipe, but must be a folder",
    ]);
    server.close();
    await expect(refusalOf("/dev/null")).rejects.toThrow("/dev/null is a device, not a folder. Specify the folder of");
  });

  test("shows what cannot be seen, or would forge a line, in names and values as escapes", async () => {
    const forged = "a\n\u001b[2J\u202eapp.json\u2028: fine";
    const line = entry({ data: { title: 1, "\ufeffkind": "a" } });
    const files = { ...bundle({ entries: [entry({ id: OTHER }), line, `\ufeff${line}`] }), [`entries/${forged}`]: "" };
    expect(await refusal(files)).toEqual([
      expect.stringMatching(/^entries\/a\\u000a\\u001b\[2J\\u202eapp\.json\\u2028: fine: must be named/),
      expect.stringContaining('entries/posts.ndjson:2: has an unknown field "\\ufeffkind"'),
      'entries/posts.ndjson:2: field "title" must be a string, not 1',
      "entries/posts.ndjson:3: begins with a byte order mark (U+FEFF), which may stand only at the beginning of a file: remove it",
    ]);
  });

  test("says where app.json is missing, what a bundle is, and which bundle is near", async () => {
    const export_ = writeBundle({
      "blog/app.json": "{}",
      "blog/entries/x": "",
      "shop/app.json": "{}",
      "notes/a.txt": "",
    });
    const is = "a bundle is a folder with app.json, content_types/<slug>.json and entries/<slug>.ndjson";
    const missing = (folder: string) => `app.json: is missing in the folder ${folder}: ${is}`;
    const [blog, shop] = [join(export_, "blog"), join(export_, "shop")];
    expect(await refusalOf(export_)).toEqual([`${missing(export_)}; did you mean ${blog} or ${shop}?`]);
    expect(await refusalOf(join(blog, "entries"))).toEqual([
      `${missing(join(blog, "entries"))}; did you mean ${blog}?`,
    ]);
    expect(await refusalOf(join(export_, "notes"))).toEqual([missing(join(export_, "notes"))]);
    await expect(refusalOf(join(blog, "app.json"))).rejects.toThrow(
      `app.json is a file, not a folder. Specify the folder of a bundle: ${is}; did you mean ${blog}?.`,
    );
  });

  test("warns of numbers that filters and sorts take for others, once for each field", async () => {
    const line = (index: number, numbers: string) =>
      entry({ id: uuid(index), data: "DATA" }).replace('"DATA"', `{"title":"12345678901234567890",${numbers}}`);
    const exact = '"price":1234567890.50000000000,"extra":9007199254740993';
    const entries = [
      ...[exact, '"price":9007199254740992', '"price":1e22', '"price":0.1', '"price":-0.30000000000000004'],
      ...['"price":9007199254740993', '"price":0.1000000000000000001', '"price":1e-400'],
    ].map((numbers, index) => line(index, numbers));
    const { warnings } = await run(bundle({ entries }));
    expect(warnings).toEqual([
      'entries/posts.ndjson:6: field "price" is 9007199254740993, but filters and sorts compare numbers as doubles, and take it for 9007199254740992 (on 3 lines: 6, 7, 8)',
    ]);
    expect((await run(bundle({ entries: [line(1, exact)] }))).warnings).toEqual([]);
  });

  test("warns of types and fields with names that Windows can give to no file", async () => {
    const fields = ["com1", "com0", "lpt9", "console"].map((name) => field(name, "text"));
    const type = typeFile({ slug: "nul", fields, filterable_fields: [], sortable_fields: [] });
    const { warnings } = await run({ "app.json": JSON.stringify(APP), "content_types/nul.json": type });
    const why =
      "has a name that Windows can give to no file: a tree with it can be built, copied and served only elsewhere";
    expect(warnings).toEqual([
      `content_types/nul.json: the content type ${why}`,
      `content_types/nul.json: field "com1" ${why}`,
      `content_types/nul.json: field "lpt9" ${why}`,
    ]);
  });

  test("says that there is no folder only of one that is missing, not of one that cannot be reached", async () => {
    const options = { prune: false, dryRun: false };
    await expect(importBundle(database, join(work, "nowhere"), options)).rejects.toThrow(
      /^There is no folder .*nowhere/,
    );
    const loop = join(work, `loop-${kind}`);
    symlinkSync(loop, loop);
    await expect(importBundle(database, loop, options)).rejects.toMatchObject({ code: "ELOOP" });
  });

  test("reports the problems of all files of a bundle at once", async () => {
    const files = bundle({ type: { per_page: 0, icon: 7 }, entries: ["{"] });
    const tags = {
      "content_types/tags.json": typeFile({ slug: "tags" }),
      "entries/tags.ndjson": `\n${entry({ id: "1", data: { nope: 1 } })}`,
    };
    expect(await refusal({ ...files, ...tags, "app.json": "{}" })).toEqual([
      'app.json: "key" is missing: it must be 1 to 128 characters from A-Z, a-z, 0-9, - and _, beginning with a letter or digit',
      'app.json: "name" is missing: it must be a string',
      'content_types/posts.json: "icon" must be a string, not 7',
      'content_types/posts.json: "per_page" must be a whole number from 1 to 100, not 0',
      expect.stringContaining("entries/posts.ndjson:1: is not valid JSON"),
      'entries/tags.ndjson:2: "id" must be a UUID such as 3f2c1a9e-7b4d-4c1e-9a55-0d6b8f7e2c10, not "1"',
      'entries/tags.ndjson:2: has an unknown field "nope"; the fields are title, body, kind, price, sold, post_date, seen, photo, author_id, tags, extra',
      'entries/tags.ndjson:2: field "title" is required: it must be a string, not nothing',
    ]);
  });
});

// ---- Bundles

function field(name: string, type: string, more: Json = {}): Json & { name: string } {
  return { name, type, label: name, required: false, searchable: false, ...more };
}

function typeFile(more: Json = {}): string {
  const type = {
    slug: "posts",
    name: "Posts",
    description: "",
    icon: "document",
    position: 3,
    default_sort: "-published_at",
    per_page: 20,
    fields: FIELDS,
    filterable_fields: ["title", "price", "published_at"],
    sortable_fields: ["title"],
  };
  return JSON.stringify({ ...type, ...more });
}

function entry(more: Json = {}): string {
  const at = "2026-01-20T15:30:00Z";
  return JSON.stringify({
    id: ID,
    status: "published",
    published_at: at,
    created_at: at,
    updated_at: at,
    data: DATA,
    ...more,
  });
}

function bundle({ type = {}, entries }: { type?: Json; entries?: string[] } = {}): Files {
  return {
    "app.json": JSON.stringify(APP),
    "content_types/posts.json": typeFile(type),
    "entries/posts.ndjson": (entries ?? [entry(), entry({ id: OTHER, ...DRAFT })]).join("\n"),
  };
}

function writeBundle(files: Files): string {
  const folder = mkdtempSync(join(work, "bundle-"));
  for (const [file, content] of Object.entries(files)) {
    if (content === null) continue;
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), content);
  }
  return folder;
}

function uuid(index: number): string {
  return `00000000-0000-4000-8000-${String(index).padStart(12, "0")}`;
}

function omit(object: Json, key: string): Json {
  return Object.fromEntries(Object.entries(object).filter(([name]) => name !== key));
}
