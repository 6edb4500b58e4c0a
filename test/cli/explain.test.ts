/** `precast explain`: shape and price of a request, its file or query plan, and the nearest free request. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { explainCommand } from "../../cli/commands/explain.ts";
import { importBundle } from "../../cli/commands/import.ts";
import { openDatabase } from "../../cli/database.ts";
import { describeIndexUse, readPlan } from "../../cli/explain/query-plan.ts";
import { type Plan, planRequest } from "../../shared/api/plan.ts";
import { type ApiRequest, readRequest } from "../../shared/api/request.ts";
import type { Database } from "../../shared/database/database.ts";
import { migrate } from "../../shared/schema/migrate.ts";
import {
  idOf,
  openEmbeddedPlace,
  openPlace,
  type Place,
  type RunningServer,
  SHOP,
  SHOP_FOLDER,
  shop,
} from "../support/cli.ts";
import { writeBundle } from "../support/content.ts";
import { jsonInProcess } from "../support/in-process.ts";
import { ENGINES, openStore, type Store } from "../support/site.ts";
import { fieldOf, typeOf } from "../support/types.ts";

type Explanation = {
  readonly request: string;
  readonly shape: string | null;
  readonly counted: boolean | null;
  readonly rule: string | null;
  readonly refusal: { readonly status: number; readonly code: string; readonly message: string } | null;
  readonly file: { readonly path: string; readonly exists: boolean; readonly has_tree: boolean } | null;
  readonly sql: Explained | null;
  readonly nearest_free: { readonly target: string; readonly same: boolean } | null;
  readonly ignored: readonly { readonly parameter: string; readonly why: string }[];
};

type Explained = {
  readonly text: string;
  readonly values: unknown[];
  readonly plan: {
    readonly ran: boolean;
    readonly planning_ms: number | null;
    readonly execution_ms: number | null;
    readonly pages: { readonly memory: number; readonly disk: number } | null;
    readonly root: Step;
  };
  readonly service: {
    readonly by_index: boolean;
    readonly indexes: string[];
    readonly read: number | null;
    readonly sentence: string;
  };
};
type Step = {
  readonly step: string;
  readonly table: string | null;
  readonly rows: { readonly estimated: number; readonly actual: number | null };
  readonly milliseconds: number | null;
  readonly nodes: readonly Step[];
};

const ENTRY = `/posts/${idOf(1)}`;
const asShop = { appKey: SHOP };

let store: Store;
let place: Place;
let live: RunningServer;

beforeAll(async () => {
  store = await openStore("postgres");
  place = openPlace({ DATABASE_URL: store.url ?? "" });
  await place.import(shop());
  await place.build();
  live = await place.serve("--out nowhere");
});
afterAll(async () => {
  await place.close();
  await store.close();
});

/** What `explain --json` prints. Starting the program takes longer than to explain, so few tests do. */
const explain = (target: string) =>
  jsonInProcess<Explanation>({ ...place, env: { DATABASE_URL: store.url ?? "" } }, explainCommand, target, {
    app: SHOP,
  });
const explainInWords = async (target: string) => (await place.run(`explain ${target} --app ${SHOP}`)).stdout;

describe("explain of a free request", () => {
  test.each([
    ["/_schemas", "catalog", "_schemas.json"],
    ["/_schemas/posts", "schema", "_schemas/posts.json"],
    ["/posts", "page", "posts/page/1.json"],
    ["/posts?page=2", "page", "posts/page/2.json"],
    ["/posts?filter[category]=Match+Report", "filter", "posts/filter/category/x-4d61746368205265706f7274.json"],
    ["/posts?filter[price]=2020.0", "filter", "posts/filter/price/s-2020.json"],
    ["/posts?sort=-price", "sort", "posts/sort/-price.json"],
    [ENTRY.toUpperCase().replace("POSTS", "posts"), "entry", `posts/entry/${idOf(1)}.json`],
  ])("names the file that answers it: %s", async (target, shape, file) => {
    const found = await explain(target);
    const path = join("out", SHOP_FOLDER, file);
    expect(found).toMatchObject({ request: `/api/v1${target}`, shape, counted: false, refusal: null });
    expect(found).toMatchObject({ file: { path, exists: true, has_tree: true }, sql: null, nearest_free: null });
    const { text } = await live.get(`/api/v1${target}`, asShop);
    expect(readFileSync(join(place.folder, path), "utf8")).toBe(text);
  });

  test("says that its file does not exist when no entry matches the filter", async () => {
    const { file } = await explain("/posts?filter[category]=nothing");
    const path = join("out", SHOP_FOLDER, "posts/filter/category/s-nothing.json");
    expect(file).toEqual({ path, exists: false, has_tree: true });
    expect(await explainInWords("/posts?filter[category]=nothing")).toContain(
      "(this file does not exist: the answer is an empty list or 404)",
    );
  });

  test("says that the answer is live when there is no tree", async () => {
    const found = await place.json<Explanation>(`explain /posts --app ${SHOP} --out nowhere`);
    expect(found.file).toMatchObject({ exists: false, has_tree: false });
    const text = (await place.run(`explain /posts --app ${SHOP} --out nowhere`)).stdout;
    expect(text).toContain("(the app has no complete tree: the request is answered live)");
  });

  test("prints its shape, its price and its file as text", async () => {
    const text = await explainInWords("/posts?page=2");
    expect(text).toMatch(/^Request +\/api\/v1\/posts\?page=2$/m);
    expect(text).toMatch(/^Shape +page$/m);
    expect(text).toMatch(/^Counted +no: .*page.* free\.$/m);
    expect(text).toMatch(/^File +out\/x-53686f70\/v1\/posts\/page\/2\.json$/m);
  });

  test("a character that no URL may contain is shown as clients have to send it", async () => {
    const [raw, encoded] = ["/posts?filter[category]=é a\nb", "/api/v1/posts?filter[category]=%C3%A9%20a%0Ab"];
    expect(await explain(raw)).toMatchObject({ request: encoded, refusal: null, counted: false });
    expect((await live.get(encoded, asShop)).status).toBe(200);
  });

  test("a request that is too long has the server's refusal", async () => {
    const target = `/posts?q=${"a".repeat(17_000)}`;
    const { refusal, file } = await explain(target);
    expect([refusal, file]).toEqual([expect.objectContaining({ status: 414, code: "URI_TOO_LONG" }), null]);
    expect((await live.get(`/api/v1${target}`, asShop)).status).toBe(414);
  });

  test("accepts the base path, a whole URL, and a path without the leading slash", async () => {
    const { request } = await explain("/posts");
    for (const spelling of ["/api/v1/posts", "posts", "http://127.0.0.1:3000/api/v1/posts"])
      expect((await explain(spelling)).request).toBe(request);
  });
});

describe("while the tree is behind the database", () => {
  const target = "/posts?filter[category]=News";
  afterAll(() => place.import(shop()));

  test("explain uses the content types of the tree where there is one, as the server does", async () => {
    await store.database.execute("UPDATE precast.content_types SET filterable_fields = '{price}' WHERE slug = 'posts'");
    expect(await explain(target)).toMatchObject({ counted: false, refusal: null, file: { exists: true } });
    const server = await place.serve();
    expect((await server.get(`/api/v1${target}`, asShop)).status).toBe(200);
    const { refusal } = await place.json<Explanation>(`explain ${target} --app ${SHOP} --out nowhere`);
    expect((await live.get(`/api/v1${target}`, asShop)).json).toMatchObject({ error: { code: refusal?.code } });
    await server.stop();
  });

  test("explain uses the tree of an app that was deleted from the database", async () => {
    await store.database.execute("DELETE FROM precast.apps");
    expect(await explain(target)).toMatchObject({ counted: false, file: { exists: true } });
  });

  test("explain gives the refusal of a counted request for a type that was deleted from the database", async () => {
    await store.database.execute("DELETE FROM precast.apps");
    const server = await place.serve();
    const { json } = await server.get("/api/v1/posts?per_page=1", asShop);
    await server.stop();
    const { refusal, counted, sql } = await explain("/posts?per_page=1");
    expect([counted, sql, refusal?.code, refusal?.message]).toEqual([true, null, json.error.code, json.error.message]);
    expect(refusal?.code).toBe("CONTENT_TYPE_NOT_FOUND");
  });
});

describe("explain of a counted request", () => {
  test("gives the refusal of parameters that the server checks once it has found the entry", async () => {
    const target = `${ENTRY}?populate=${"x".repeat(501)}`;
    const { json } = await live.get(`/api/v1${target}`, asShop);
    const { refusal } = await explain(target);
    expect(refusal).toMatchObject({ status: 400, code: json.error.code, message: json.error.message });
  });

  test("shows the rule, the SQL with its values, and the plan", async () => {
    const found = await explain("/posts?filter[category]=News&filter[price][gte]=2");
    expect(found).toMatchObject({ shape: "list", counted: true, file: null, refusal: null });
    expect(found.rule).toMatch(/more than one filter/i);
    expect(found.sql?.text).toMatch(/^WITH\s[\s\S]*precast\.entries/);
    expect(found.sql?.text).not.toContain("News");
    expect(found.sql?.values).toContain("News");
    expect(found.sql?.plan.ran).toBe(true);
  });

  test("prints its price, its free alternative, the SQL, the plan and the index as text", async () => {
    const text = await explainInWords("/posts?filter[category]=News&per_page=2 --sql --plan");
    expect(text).toMatch(/^Counted +yes: .*per_page.*$/m);
    expect(text).toMatch(/^Free +\/api\/v1\/posts\?filter\[category\]=News \(the same answer\)$/m);
    expect(text).toMatch(/^SQL$/m);
    expect(text).toMatch(
      /^Plan +planned in [\d.]+ ms, run in [\d.]+ ms, [\d,]+ pages from shared buffers, [\d,]+ from disk or the OS cache$/m,
    );
    expect(text).toMatch(/^ +-> \w.* of entries.*: 1 row \(\d+ expected\).*ms$/m);
    expect(text).toMatch(/^Index +\w.*\.$/m);
  });

  test("prints at most ten lines unless it is asked for the SQL or the steps of the plan", async () => {
    const target =
      "/posts/search?q=an&filter[category]=News&filter[x][like]=y&sort=-price&per_page=2&utm_source=x&fields=titel";
    const lines = (await explainInWords(target)).trimEnd().split("\n");
    expect(lines.length).toBeLessThanOrEqual(10);
    expect(lines.filter((line) => /^(SQL|Values| *->)/.test(line))).toEqual([]);
  });

  test.each([
    ["/posts?utm_source=x", [["utm_source", /^no endpoint has it$/]]],
    ["/posts?perpage=2", [["perpage", /^no endpoint has it \(did you mean per_page\?\)$/]]],
    ["/posts?populate=author_id", [["populate", /^a list does not have it$/]]],
    [`${ENTRY}?fields=title`, [["fields", /^a single entry does not have it$/]]],
    ["/_schemas?page=2", [["page", /^the catalog does not have it$/]]],
    ["/posts?sort=&page=1", [["sort", /^it is empty/]]],
    ["/posts?filter[title][like]=x", [["filter[title][like]", /contains/]]],
    ["/posts?fields=title,prise,", [["fields", /^the type has no field 'prise' \(did you mean price\?\)$/]]],
    [
      `${ENTRY}?populate=title,autor_id`,
      [
        ["populate", /'title'$/],
        ["populate", /'autor_id' \(did you mean author_id\?\)$/],
      ],
    ],
    ["/posts?filter[price]=2&page=2&sort=-price&per_page=2&fields=id,published_at", []],
  ] as const)("names what a request sends in vain: %s", async (target, vain) => {
    const { ignored } = await explain(target);
    expect(ignored).toEqual(vain.map(([parameter, why]) => ({ parameter, why: expect.stringMatching(why) })));
  });

  test.each([
    ["a per_page equal to the type's own", "/posts?per_page=2", "/posts"],
    ["a per_page with a leading zero, equal to the type's own", "/posts?per_page=02&page=2", "/posts?page=2"],
    ["page=1 with a filter", "/posts?filter[category]=News&page=1", "/posts?filter[category]=News"],
    ["page=1 with a sort", "/posts?sort=price&page=1", "/posts?sort=price"],
    ["a page with the default sort", "/posts?sort=published_at&page=2", "/posts?page=2"],
    ["a filter with the default sort", "/posts?filter[active]=1&sort=-published_at", "/posts?filter[active]=1"],
    ["an in filter with one value", "/posts?filter[category][in]=News", "/posts?filter[category]=News"],
    ["an in filter with one value among empty ones", "/posts?filter[tags][in]=,%C3%A4,", "/posts?filter[tags]=%C3%A4"],
  ])("names a free request with the same answer when parameters are redundant: %s", async (_, counted, free) => {
    const { nearest_free } = await explain(counted);
    expect(nearest_free).toEqual({ target: `/api/v1${free}`, same: true });
  });

  test.each([
    ["/posts?per_page=1", "/posts"],
    ["/posts?fields=title", "/posts"],
    ["/posts?filter[category]=News&filter[active]=true", "/posts?filter[category]=News"],
    ["/posts?filter[price][gte]=2&sort=price", "/posts?sort=price"],
    ["/posts?filter[price][gte]=2&page=2", "/posts?page=2"],
    ["/posts?filter[category][in]=News,Old", "/posts"],
    [`${ENTRY}?populate=author_id`, ENTRY],
  ])("names the nearest free request when no free one has the same answer: %s", async (counted, free) => {
    const { nearest_free } = await explain(counted);
    expect(nearest_free).toEqual({ target: `/api/v1${free}`, same: false });
  });

  test("names no free request for a search", async () => {
    const found = await explain("/posts/search?q=one");
    expect(found).toMatchObject({ shape: "search", counted: true, nearest_free: null });
    expect(found.sql?.values).toContain("one");
    expect(await explainInWords("/posts/search?q=one")).not.toMatch(/^Free/m);
  });

  test.each([
    "/posts?per_page=2",
    "/posts?per_page=2&page=2",
    "/posts?per_page=2&sort=-created_at",
    "/posts?filter[category][in]=News&per_page=2",
    "/posts?filter[category]=News&filter[category][in]=Match+Report",
    "/posts?filter[tags]=a&filter[tags][in]=%C3%A4",
    "/posts?filter[price][in]=0.50&page=1",
    "/posts?filter[price][in]=2020&sort=published_at&page=01",
    "/posts?filter[nope][in]=1",
    "/authors?sort=name&per_page=20",
    "/authors?per_page=2&fields=id",
    `${ENTRY}?populate=author_id`,
  ])("names a request that is free, and says that its answer is the same only if it is: %s", async (target) => {
    const { nearest_free } = await explain(target);
    const asked = await live.get(`/api/v1${target}`, asShop);
    const free = await live.get(nearest_free?.target ?? "", asShop);
    expect([asked.headers["x-request-counted"], free.headers["x-request-counted"]]).toEqual(["true", "false"]);
    expect(free.status).toBe(200);
    if (nearest_free?.same) expect(free.text).toBe(asked.text);
  });
});

describe("explain of a refused request", () => {
  test.each([
    ["/posts?filter[title]=x", "list", true, 400, "INVALID_FILTER", "/posts"],
    ["/posts?per_page=0", "list", true, 400, "INVALID_PER_PAGE", "/posts"],
    ["/posts?page=0&per_page=1", "list", true, 400, "INVALID_PAGE", null],
    ["/posts?page=0", "page", false, 400, "INVALID_PAGE", null],
    ["/posts/search", "search", true, 400, "INVALID_QUERY", null],
    ["/nope", "page", false, 404, "CONTENT_TYPE_NOT_FOUND", null],
    ["/secrets", "page", false, 404, "CONTENT_TYPE_NOT_FOUND", null],
    ["/posts/nope", "entry", false, 404, "ENTRY_NOT_FOUND", null],
    ["/posts/nope/nope", null, null, 404, "NOT_FOUND", null],
  ])(
    "shows the server's error, and whether the request counts: %s",
    async (target, shape, counted, status, code, free) => {
      const found = await explain(target);
      expect(found).toMatchObject({ shape, counted, refusal: { status, code }, sql: null, file: null });
      expect(found.nearest_free?.target ?? null).toBe(free === null ? null : `/api/v1${free}`);
      const { status: answered, json, headers } = await live.get(`/api/v1${target}`, asShop);
      expect([answered, json.error.message]).toEqual([status, found.refusal?.message]);
      expect(headers["x-request-counted"]).toBe(counted === null ? undefined : String(counted));
    },
  );

  test("prints the status, the code and the message as text", async () => {
    expect(await explainInWords("/posts?per_page=0")).toMatch(/^Answer +400 INVALID_PER_PAGE: .*1 to 100/m);
  });
});

test("explain takes the only app, and else lists the existing ones", async () => {
  expect((await place.run("explain /posts")).stdout).toMatch(/^Shape +page$/m);
  const unknown = await place.run("explain /posts --app nope");
  expect([unknown.code, unknown.stdout]).toEqual([1, ""]);
  expect(unknown.stderr).toMatch(/^.*\bnope\b.*\bShop\b.*\n$/);
  await store.database.execute("INSERT INTO precast.apps (key, name) VALUES ('Other', 'Other')");
  const missing = await place.run("explain /posts");
  await store.database.execute("DELETE FROM precast.apps WHERE key = 'Other'");
  expect([missing.code, missing.stdout]).toEqual([1, ""]);
  expect(missing.stderr).toBe("--app is missing, and there are several apps: Other, Shop\n");
});

test("a plan step that parallel processes share is shown with the time of one process, not with the sum", () => {
  const run = (step: string, time: number, loops: number) => ({
    "Node Type": step,
    "Plan Rows": 1,
    "Actual Rows": 100,
    "Actual Loops": loops,
    "Actual Total Time": time,
  });
  const scan = { ...run("Nested Loop", 90, 3), Plans: [run("Seq Scan", 50, 3), run("Index Scan", 0.1, 300)] };
  const gather = { ...run("Gather", 100, 1), "Workers Launched": 2, Plans: [scan, run("Result", 2, 1)] };
  const { root } = readPlan([{ Plan: gather, "Planning Time": 1, "Execution Time": 101 }]);
  expect(allOf(root).map(({ step, milliseconds }) => `${step} ${milliseconds}`)).toEqual([
    "Gather 100",
    "Nested Loop 90",
    "Seq Scan 50",
    "Index Scan 10",
    "Result 2",
  ]);
});

describe("what explain says about indexes", () => {
  const fields = [
    fieldOf("kind", "text", { searchable: true }),
    fieldOf("views", "number"),
    fieldOf("tags", "text", { multiple: true }),
  ];
  const logs = typeOf("logs", fields, {
    filterable_fields: ["kind", "views", "tags"],
    sortable_fields: ["kind"],
  });
  const planOf = (path: string) =>
    planRequest(readRequest({ method: "GET", target: `/api/v1${path}`, appKey: "a" }) as ApiRequest, logs) as Plan;
  const step = (rows: number, more: object) => {
    return { "Node Type": "Scan", "Plan Rows": rows, "Actual Rows": rows, "Actual Loops": 1, ...more };
  };
  const scan = (rows: number, more: object = {}) => step(rows, { "Relation Name": "entries", ...more });
  const byIndex = (rows: number, condition: string, more: object = {}) =>
    scan(rows, { "Index Name": "some_index", "Index Cond": condition, ...more });
  const estimated = { "Node Type": "Scan", "Plan Rows": 9_000, "Relation Name": "entries" };
  const [ofType, ofValue] = ["(content_type_id = 1)", "((content_type_id = 1) AND (t1 = 'a'::text))"];
  const ofWord = "(precast.term_keys(content_type_id, words) && $4)";
  const [equal, above] = ["/logs?filter[kind]=a&per_page=3", "/logs?filter[views][gt]=1"];
  const doctor = "Run `precast doctor` to see whether the database lacks something.";
  const oneMore = `One more filter, on a value that few entries have, would help. ${doctor}`;

  test.each<[string, object, number | null, string]>([
    [equal, step(1, { "Relation Name": "entry_counts" }), 5_000, "The query reads no entries."],
    [equal, byIndex(30, ofValue), 5_000, "Served by index some_index: reads 30 of 5,000 entries."],
    [
      equal,
      byIndex(30, ofValue, { "Rows Removed by Filter": 5 }),
      5_000,
      "Served by index some_index: reads 35 of 5,000 entries, and discards 5 of them.",
    ],
    [equal, byIndex(30, ofValue), null, "Served by index some_index: reads 30 entries."],
    [
      "/logs?filter[kind]=a&filter[views][gt]=1",
      byIndex(30, "((content_type_id = 1) AND (t1 = 'a'::text) AND (n1 > '1'::double precision))", {
        "Index Name": "entries_by_t1",
      }),
      5_000,
      "Served by index entries_by_t1: goes through a range of it, where 30 of 5,000 entries meet the other conditions too.",
    ],
    [
      "/logs?filter[kind]=R%20AND%20D%20E",
      byIndex(30, "((content_type_id = 1) AND (t1 = 'R AND D E ''AND F'' G'::text))", {
        "Index Name": "entries_by_t1",
      }),
      5_000,
      "Served by index entries_by_t1: reads 30 of 5,000 entries.",
    ],
    [
      "/logs?filter[kind]=a&filter[published_at][gt]=2020-01-01",
      byIndex(30, "((content_type_id = 1) AND (t1 = 'a'::text) AND (published_at > '2020-01-01'::timestamptz))", {
        "Index Name": "entries_by_t1",
      }),
      5_000,
      "Served by index entries_by_t1: reads 30 of 5,000 entries.",
    ],
    [
      equal,
      step(0, {
        Plans: [
          byIndex(0, ofType, { Filter: "(t1 = 'a'::text)", "Actual Loops": 0 }),
          byIndex(0, ofValue, { "Index Name": "other_index" }),
        ],
      }),
      5_000,
      "Served by index other_index: reads 0 of 5,000 entries.",
    ],
    [equal, byIndex(30, ofValue), 20, "Served by index some_index: reads 30 entries."],
    [
      "/logs?per_page=3",
      byIndex(30, ofType, { Filter: "(status = 'published'::text)" }),
      5_000,
      "Served by index some_index: reads 30 of 5,000 entries.",
    ],
    [
      above,
      byIndex(5_001, ofType, { Filter: "(n1 > 1)" }),
      5_000,
      `Reads all 5,000 entries of the type, and 1 other row: no index selects the requested ones. ${oneMore}`,
    ],
    [above, scan(3_000), 5_000, `Reads 3,000 of the type's 5,000 entries: no index is used. ${oneMore}`],
    [above, estimated, null, `Reads every entry of the type: no index is used. ${oneMore}`],
    [
      above,
      scan(2_000),
      2_000,
      "Reads all 2,000 entries of the type: no index is used. With so few entries, no index is needed.",
    ],
    [
      "/logs/search?q=ab+a",
      scan(5_000),
      5_000,
      "Reads all 5,000 entries of the type: no index is used. A word of 3 letters or more would help.",
    ],
    ["/logs/search?q=abc", byIndex(30, ofWord), 5_000, "Served by index some_index: reads 30 of 5,000 entries."],
    [
      "/logs/search?q=abc+bcd+cde+def+ab",
      byIndex(30, ofWord),
      5_000,
      "Served by index some_index: reads 30 of 5,000 entries.",
    ],
    [
      "/logs/search?q=abc+ab",
      byIndex(30, ofWord),
      5_000,
      "Served by index some_index: reads 30 of 5,000 entries. Before that, it reads all different words of the type to look for those of fewer than 3 letters.",
    ],
    [
      "/logs?filter[tags][contains]=ab",
      scan(5_000),
      5_000,
      `Reads all 5,000 entries of the type: no index is used. ${oneMore}`,
    ],
    [
      "/logs/search?q=ab",
      byIndex(5_000, ofWord),
      5_000,
      "Reads all 5,000 entries of the type: no index selects the requested ones. A word of 3 letters or more would help.",
    ],
    ["/logs/search?q=abc+a", scan(5_000), 5_000, `Reads all 5,000 entries of the type: no index is used. ${oneMore}`],
    [
      "/logs?filter[kind][nin]=a,b",
      scan(5_000),
      5_000,
      "Reads all 5,000 entries of the type: no index is used. Most entries match neq and nin: name the wanted values with eq or in instead.",
    ],
    [
      "/logs?filter[kind][contains]=ab",
      scan(5_000),
      5_000,
      "Reads all 5,000 entries of the type: no index is used. A text of 3 letters or more would help.",
    ],
    [
      "/logs?sort=kind&per_page=3",
      step(5_000, { "Node Type": "Sort", Plans: [scan(5_000)] }),
      5_000,
      `Reads all 5,000 entries of the type: no index is used. Sorting in the default order would help. ${doctor}`,
    ],
    [
      "/logs?filter[views][gt]=1&sort=kind",
      step(5_000, { "Node Type": "Sort", Plans: [scan(5_000)] }),
      5_000,
      `Reads all 5,000 entries of the type: no index is used. ${oneMore}`,
    ],
  ])("depends on what the plan reads and what was asked: %s", (path, root, entries, sentence) => {
    const times = root === estimated ? {} : { "Execution Time": 1 };
    const use = describeIndexUse(readPlan([{ Plan: root, ...times }]), planOf(path), entries);
    expect(use.sentence).toBe(sentence);
    expect(use.by_index).toBe(!/no index/.test(sentence));
  });
});

/** A type of many entries beside the shop's, each with a slug of its own. */
const MANY = 2_001;
const LOG = `INSERT INTO precast.content_types (app_id, slug, filterable_fields)
  SELECT id, 'logs', '{}' FROM precast.apps WHERE key = 'Shop';
INSERT INTO precast.fields (content_type_id, name, position, type)
  SELECT id, 'slug', 1, 'text' FROM precast.content_types WHERE slug = 'logs';
UPDATE precast.content_types SET filterable_fields = '{slug}' WHERE slug = 'logs';
INSERT INTO precast.entries (content_type_id, id, status, published_at, data)
  SELECT id, gen_random_uuid(), 'published', now(), jsonb_build_object('slug', 's' || n)
  FROM precast.content_types, generate_series(1, ${MANY}) AS n WHERE slug = 'logs'`;

/** From now on the read of an entry takes two seconds. */
const SLOW = `ALTER TABLE precast.entries RENAME TO kept_entries;
CREATE VIEW precast.entries AS SELECT * FROM precast.kept_entries WHERE pg_sleep(2) IS NOT NULL`;

describe.each(ENGINES)("the plan of a counted request: %s", (engine) => {
  let place: Place;
  let own: Store | null = null;

  beforeAll(async () => {
    own = engine === "postgres" ? await openStore("postgres") : null;
    place = own === null ? await openEmbeddedPlace() : openPlace({ DATABASE_URL: own.url ?? "" });
    const bundle = join(place.folder, "bundle");
    await writeBundle(bundle, shop());
    await change(async (database) => {
      await migrate(database);
      await importBundle(database, bundle, { prune: false, dryRun: false });
      await database.execute(LOG);
      await database.execute("ANALYZE");
    });
  });
  afterAll(async () => {
    await place.close();
    await own?.close();
  });

  async function change(run: (database: Database) => Promise<void>): Promise<void> {
    if (own !== null) return run(own.database);
    const options = { url: null, dataDir: join(place.folder, ".precast"), queryTimeout: null, connections: 1 };
    const database = await openDatabase(options);
    await run(database).finally(database.close);
  }
  const explained = async (target: string) =>
    (await place.json<Explanation>(`explain ${target} --app ${SHOP}`)).sql as Explained;

  test("is measured in a run, with the time and the rows of each step", async () => {
    const { plan } = await explained("/posts?filter[price][gte]=2&per_page=1");
    expect(plan).toMatchObject({ ran: true, planning_ms: expect.any(Number), execution_ms: expect.any(Number) });
    expect((plan.pages?.memory ?? 0) + (plan.pages?.disk ?? 0)).toBeGreaterThan(0);
    const steps = allOf(plan.root);
    expect(plan.root.rows.actual).toBe(1);
    expect(steps.filter(({ table }) => table === "entries").length).toBeGreaterThan(0);
    expect(
      steps.map(({ milliseconds, rows }) => typeof milliseconds === "number" && rows.actual !== null),
    ).not.toContain(false);
  });

  test("names the index that served the query", async () => {
    const { service } = await explained("/logs?filter[slug]=s7&per_page=5");
    expect(service.by_index).toBe(true);
    expect(service.indexes).not.toEqual([]);
    expect(service.read).toBeLessThan(20);
    for (const name of service.indexes) expect(service.sentence).toContain(name);
    expect(service.sentence).toMatch(/^Served by index /);
  });

  test("does not scan the entries table for a page deep in a list", async () => {
    const { plan, service } = await explained("/logs?per_page=5&page=300");
    const whole = allOf(plan.root).filter(({ step, table }) => table === "entries" && step === "Seq Scan");
    expect(whole).toEqual([]);
    expect(service.by_index).toBe(true);
  });

  test("says that all entries were read, and that so few need no index", async () => {
    const { service } = await explained("/posts?filter[category][contains]=e&per_page=1");
    expect(service).toMatchObject({ by_index: false });
    const why = service.indexes.length === 0 ? "no index is used" : "no index selects the requested ones";
    expect(service.sentence).toMatch(
      new RegExp(`^Reads all 3 entries of the type.*: ${why}\\. With so few entries, no index is needed\\.$`),
    );
  });

  test("says that no index is needed when few of many entries were read without one", async () => {
    const { service } = await explained("/logs?filter[slug][neq]=s7&per_page=5");
    expect(service.read).toBeLessThan(20);
    expect(service.sentence).toMatch(
      /^Reads \d+ of the type's 2,001 entries: .*\. With so few entries, no index is needed\.$/,
    );
  });

  test("is shown without measured times when the query takes longer than a live query may", async () => {
    await change((database) => database.execute(SLOW));
    const { stdout } = await place.run(`explain /posts?filter[price][gte]=0&per_page=1 --app ${SHOP} --plan`);
    expect(stdout).toMatch(
      /^Plan +not completed: the query takes longer than 5 seconds, so the live answer is 504 QUERY_TIMEOUT$/m,
    );
    expect(stdout).toMatch(/ of kept_entries.*: \d+ rows? expected$/m);
  });
});

function allOf(step: Step): Step[] {
  return [step, ...step.nodes.flatMap(allOf)];
}
