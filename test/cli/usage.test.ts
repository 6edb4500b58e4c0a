/** `precast usage`: totals, days, the costliest shapes, what could have been free, and output as JSON and CSV. */
import { spawnSync } from "node:child_process";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { MAIN, openPlace, type Place } from "../support/cli.ts";
import { openStore, type Store } from "../support/site.ts";

const ROWS = `('Shop', '2026-01-01', 'list', 200, 1200, 'per_page=20'), ('Shop', '2026-01-01', 'list', 200, 34, ''),
  ('Shop', '2026-01-01', 'list', 400, 5, 'per_page=20'), ('Shop', '2026-01-04', 'search', 504, 100, ''),
  ('Shop', '2026-01-04', 'list', 200, 1, 'fields&sort=-published_at&page=1'),
  ('other', '2026-01-02', 'populate', 404, 7, 'populate'), ('other', '2026-01-02', 'list', 200, 2, 'filter[][in]'),
  ('other', '2026-01-02', 'list', 200, 3, 'filter[][gte..lte]'), ('other', '2026-01-02', 'list', 200, 4, 'new=1')`;

let store: Store;
let place: Place;

beforeAll(async () => {
  store = await openStore("postgres");
  place = openPlace({ DATABASE_URL: store.url ?? "" });
});
afterAll(async () => {
  await place.close();
  await store.close();
});
beforeEach(async () => {
  await store.database.execute(`DELETE FROM precast.usage;
    INSERT INTO precast.usage (app_key, day, shape, status, count, saving) VALUES ${ROWS}`);
});

describe("usage as text", () => {
  const inWords = async (line = "") => (await place.call(`usage ${line}`)).stdout;

  test("prints the total, its first and last day, and sums by app and shape", async () => {
    const text = await inWords();
    expect(text).toMatch(/^1,356 counted requests, 2026-01-01 to 2026-01-04 \(UTC\)$/m);
    expect(text).toContain(
      "By app and shape\nShop\tlist\t1,240\nShop\tsearch\t100\nother\tlist\t9\nother\tpopulate\t7\n",
    );
  });

  test("draws a bar for each day, and a line for days on which nothing was counted", async () => {
    expect(await inWords("--since 2025-12-31 --until 2026-01-05")).toContain(`Day by day
2025-12-31      0
2026-01-01  1,239  ${"█".repeat(61)}
2026-01-02     16  █
2026-01-03      0
2026-01-04    101  █████
2026-01-05      0

`);
  });

  test("draws no days before the first and after the last count when --since and --until are far away", async () => {
    const text = await inWords("--since 0001-01-01 --until 9999-12-31");
    expect(text).toMatch(/^1,356 counted requests, 2026-01-01 to 2026-01-04 \(UTC\)$/m);
    expect(text.match(/^20\d\d-\d\d-\d\d /gm)).toHaveLength(4);
  });

  test("draws only days with counts when a wrong clock has put them far apart", async () => {
    await store.database.execute(`INSERT INTO precast.usage (app_key, day, shape, status, count, saving) VALUES
      ('Shop', '0001-01-01', 'list', 200, 1, ''), ('Shop', '9999-12-31', 'list', 200, 1, '')`);
    expect((await inWords()).match(/^\d{4}-\d\d-\d\d /gm)).toEqual(
      ["0001-01-01", "2026-01-01", "2026-01-02", "2026-01-04", "9999-12-31"].map((day) => `${day} `),
    );
  });

  test.each(["SQL, DMY", "German", "Postgres, MDY"])("prints the same text when DateStyle is %s", async (style) => {
    const usual = await inWords();
    const url = new URL(store.url ?? "");
    url.searchParams.set("options", `-c DateStyle=${style.replace(" ", "\\ ")}`);
    const { stdout } = await place.call("usage", { DATABASE_URL: url.href });
    expect(stdout).toBe(usual);
  });

  test("lists the costliest shapes first, with their status", async () => {
    expect(await inWords("--app Shop")).toContain(
      "Costliest\nShop\tlist\t200\t1,235\t92.2 %\nShop\tsearch\t504\t100\t7.5 %\nShop\tlist\t400\t5\t0.4 %\n",
    );
  });

  test("prints which requests could have been free, and how", async () => {
    const text = await inWords();
    expect(text.slice(text.indexOf("Could"))).toBe(`Could have been free: 1,222 requests, 90.1 %
Shop: drop per_page=20, which is the default: 1,205 requests
other: drop populate, which names no relation: 7 requests
other: drop new=1: 4 requests
other: write filter[field]=value instead of gte and lte with the same value: 3 requests
other: write filter[field]=value instead of filter[field][in]=value with one value: 2 requests
Shop: drop fields, which names all fields that a list shows; drop sort=-published_at, which is the default order; drop page=1, which is the first page anyway: 1 request
`);
  });

  test("prints no savings when there are none, and only the total when nothing was counted", async () => {
    await store.database.execute(
      "UPDATE precast.usage SET saving = '' WHERE count = 34; DELETE FROM precast.usage WHERE saving <> ''",
    );
    expect(await inWords()).not.toContain("free");
    expect(await inWords("--app Shop --since 2026-02-01")).toBe("0 counted requests\n");
  });

  test("refuses an unknown app, and prints 0 for an app without counts", async () => {
    await store.database.execute("INSERT INTO precast.apps (key) VALUES ('quiet') ON CONFLICT DO NOTHING");
    expect(await place.run("usage --app quiet")).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^0 counted/),
    });
    expect(await place.run("usage --app nope")).toMatchObject({
      code: 1,
      stdout: "",
      stderr: "No app has the key nope. Apps in the database: quiet.\n",
    });
  });

  test.each(["0000-01-01", "2026-02-30", "today"])("refuses --since %s, which is not a date", async (day) => {
    const { code, stderr } = await place.call(`usage --since ${day}`);
    expect([code, stderr]).toEqual([1, expect.stringContaining("--since must be a date such as 2026-01-20")]);
  });

  test("refuses a --since that is later than --until", async () => {
    const { code, stderr } = await place.call("usage --since 2026-01-05 --until 2026-01-04");
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/^--since 2026-01-05 is later than --until 2026-01-04.*\n$/),
    ]);
  });

  test("fits the bars to the width of the terminal", () => {
    const command = `stty cols 60; ${process.execPath} ${MAIN} usage --until 2026-01-01`;
    const { stdout } = spawnSync("script", ["-qec", command, "/dev/null"], {
      encoding: "utf8",
      env: { PATH: process.env.PATH, HOME: process.env.HOME, TERM: "xterm", DATABASE_URL: store.url ?? "" },
    });
    expect(stdout).toMatch(/^2026-01-01 {2}1,239 {2}█{41}\r?$/m);
  });
});

describe("usage for programs", () => {
  test("--json contains the rows, and everything that the text shows", async () => {
    const report = await place.json<Record<string, unknown>>("usage --app other");
    expect(report).toEqual({
      total: 16,
      rows: [
        { app: "other", day: "2026-01-02", shape: "list", status: 200, saving: "filter[][gte..lte]", count: 3 },
        { app: "other", day: "2026-01-02", shape: "list", status: 200, saving: "filter[][in]", count: 2 },
        { app: "other", day: "2026-01-02", shape: "list", status: 200, saving: "new=1", count: 4 },
        { app: "other", day: "2026-01-02", shape: "populate", status: 404, saving: "populate", count: 7 },
      ],
      apps: [
        { app: "other", shape: "list", count: 9 },
        { app: "other", shape: "populate", count: 7 },
      ],
      days: [{ day: "2026-01-02", count: 16 }],
      shapes: [
        { app: "other", shape: "list", status: 200, count: 9 },
        { app: "other", shape: "populate", status: 404, count: 7 },
      ],
      savings: [
        expect.objectContaining({ app: "other", saving: "populate", count: 7, advice: expect.any(String) }),
        expect.objectContaining({ saving: "new=1", count: 4 }),
        expect.objectContaining({ saving: "filter[][gte..lte]", count: 3 }),
        expect.objectContaining({ saving: "filter[][in]", count: 2 }),
      ],
    });
  });

  test("--csv prints a header and a record for each row, in the form of RFC 4180", async () => {
    await store.database.execute(
      `INSERT INTO precast.usage (app_key, day, shape, status, count, saving) VALUES ('z', '2026-01-09', 'a "b", c', 200, 1, '')`,
    );
    const { code, stdout, stderr } = await place.run("usage --csv --since 2026-01-04");
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toBe(
      [
        "app,day,shape,status,saving,count",
        "Shop,2026-01-04,list,200,fields&sort=-published_at&page=1,1",
        "Shop,2026-01-04,search,504,,100",
        'z,2026-01-09,"a ""b"", c",200,,1',
        "",
      ].join("\r\n"),
    );
    expect((await place.call("usage", { PRECAST_CSV: "true" })).stdout).toMatch(/^app,day,/);
    expect((await place.call("usage --csv --since 2026-02-01")).stdout).toBe("app,day,shape,status,saving,count\r\n");
  });

  test("--csv and --json cannot be combined", async () => {
    for (const env of [{ PRECAST_JSON: "true" }, {}]) {
      const line = `usage --csv${"PRECAST_JSON" in env ? "" : " --json"}`;
      const { code, stdout, stderr } = await place.call(line, env);
      expect([code, stdout]).toEqual([1, ""]);
      expect(stderr).toBe("--csv and --json cannot be combined: specify only one of them.\n");
    }
  });
});

describe("usage by types and fields", () => {
  beforeEach(async () => {
    await store.database.execute(`DELETE FROM precast.usage;
      INSERT INTO precast.usage (app_key, day, shape, status, count, saving, type, fields) VALUES
        ('Shop', '2026-01-01', 'list', 200, 1200, '', 'posts', 'title'),
        ('Shop', '2026-01-01', 'list', 400, 34, 'page=1', 'posts', 'title'),
        ('Shop', '2026-01-02', 'list', 200, 5, '', 'posts', 'author,title'),
        ('Shop', '2026-01-02', 'search', 200, 100, '', 'posts', ''),
        ('Shop', '2026-01-02', 'list', 200, 9, '', '(other)', '(other)'),
        ('Shop', '2026-01-02', 'list', 200, 2, '', '', '')`);
  });

  test("prints the costliest types, or combinations of fields, first", async () => {
    expect((await place.call("usage --by type")).stdout).toMatch(
      /^1,350 counted requests, 2026-01-01 to 2026-01-02 \(UTC\)\n\nCostliest\nShop\tposts\t1,339\t99\.2 %\nShop\t\(other\)\t9\t0\.7 %\nShop\t\(none\)\t2\t0\.1 %\n\nDay by day\n/,
    );
    expect((await place.call("usage --by field")).stdout).toContain(
      "Costliest\nShop\tposts\ttitle\t1,234\t91.4 %\nShop\tposts\t(none)\t100\t7.4 %\nShop\t(other)\t(other)\t9\t0.7 %\nShop\tposts\tauthor,title\t5\t0.4 %\n",
    );
    expect((await place.call("usage --by shape")).stdout).toBe((await place.call("usage")).stdout);
  });

  test("without --by, sums are as if types and fields were not recorded", async () => {
    const { rows } = await place.json<{ rows: unknown[] }>("usage --since 2026-01-02");
    expect(rows).toEqual([
      { app: "Shop", day: "2026-01-02", shape: "list", status: 200, saving: "", count: 16 },
      { app: "Shop", day: "2026-01-02", shape: "search", status: 200, saving: "", count: 100 },
    ]);
  });

  test("--json and --csv have the rows of each day", async () => {
    expect(await place.json("usage --by type --since 2026-01-02")).toMatchObject({
      total: 116,
      by: "type",
      rows: [
        { app: "Shop", day: "2026-01-02", type: "", count: 2 },
        { app: "Shop", day: "2026-01-02", type: "(other)", count: 9 },
        { app: "Shop", day: "2026-01-02", type: "posts", count: 105 },
      ],
      sums: [{ app: "Shop", type: "posts", count: 105 }, expect.anything(), expect.anything()],
    });
    expect((await place.call("usage --by field --csv --until 2026-01-01")).stdout).toBe(
      "app,day,type,fields,count\r\nShop,2026-01-01,posts,title,1234\r\n",
    );
  });
});
