/** `precast plan`: what a change would cost is what it then costs, and planning it changes nothing. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { withDatabase } from "../../cli/database.ts";
import { countRequests, priceDeploy } from "../../cli/plan/prices.ts";
import type { PlanReport } from "../../cli/plan/report.ts";
import { COMMON_NAMES, readSettings } from "../../shared/config.ts";
import type { Database } from "../../shared/database/database.ts";
import { sql } from "../../shared/sql/query.ts";
import { openActivity } from "../support/activity.ts";
import {
  idOf,
  openEmbeddedPlace,
  openPlace,
  type Place,
  readTree,
  SHOP,
  shop,
  shopWith,
  shopWithout,
} from "../support/cli.ts";
import { writeBundle } from "../support/content.ts";
import type { Bundle, BundleType } from "../support/model-bundle.ts";
import { startS3 } from "../support/s3.ts";
import { openStore, type Store } from "../support/site.ts";
import { until } from "../support/until.ts";

let store: Store;
let place: Place;
beforeAll(async () => {
  store = await openStore("postgres", { connections: 8 });
  place = openPlace({ DATABASE_URL: store.url ?? "" });
});
afterAll(async () => {
  await place.close();
  await store.close();
});
beforeEach(async () => {
  await store.database.execute("DELETE FROM precast.apps; DELETE FROM precast.usage");
  rmSync(join(place.folder, "out"), { recursive: true, force: true });
});

/** Writes the bundle into a new folder, and returns the folder. */
async function written(bundle: Bundle, at: Place = place): Promise<string> {
  const folder = mkdtempSync(join(at.folder, "bundle-"));
  await writeBundle(folder, bundle);
  return folder;
}

function changedType(slug: string, change: Partial<BundleType>): BundleType {
  return { ...(shop().types.find((type) => type.slug === slug) as BundleType), ...change };
}

function withTypes(...types: BundleType[]): Bundle {
  const all = new Map([...shop().types, ...types].map((type) => [type.slug, type]));
  return { ...shop(), types: [...all.values()] };
}

/** The rows of all tables. */
async function dump(database: Database): Promise<Record<string, string>> {
  const tables = await database.query(
    sql("SELECT relname::text FROM pg_class WHERE relnamespace = 'precast'::regnamespace AND relkind = 'r' ORDER BY 1"),
  );
  const rows: Record<string, string> = {};
  for (const [table] of tables) {
    const all = `SELECT coalesce(string_agg(t::text, E'\n' ORDER BY t::text), '') FROM precast.${table} AS t`;
    rows[table as string] = (await database.query(sql(all)))[0]?.[0] as string;
  }
  return rows;
}

type Sum = { added: number; changed: number; gone: number; written: number; growth: number };

/** What differs between two trees, by app folder, type and kind. */
function compareTrees(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): Map<string, Sum> {
  const sums = new Map<string, Sum>();
  const size = (text: string | undefined) => Buffer.byteLength(text ?? "");
  for (const path of new Set([...before.keys(), ...after.keys()])) {
    const [was, is] = [before.get(path), after.get(path)];
    if (was === is) continue;
    const [, , first = "", second = ""] = path.replace(".json", "").split("/");
    const kinds: Record<string, string> = { entry: "entries", page: "pages", filter: "filters", sort: "sorts" };
    const name = first === "_schemas" ? `${second} schemas` : `${first} ${kinds[second]}`;
    const sum = sums.get(name) ?? { added: 0, changed: 0, gone: 0, written: 0, growth: 0 };
    sums.set(name, sum);
    sum[was === undefined ? "added" : is === undefined ? "gone" : "changed"] += 1;
    sum.written += size(is);
    sum.growth += size(is) - size(was);
  }
  return sums;
}

function sumsOf({ files }: PlanReport): Map<string, Sum> {
  return new Map(files.map(({ app: _, type, kind, ...sum }) => [`${type ?? ""} ${kind}`, sum]));
}

/** New, edited and unpublished posts. */
const edited = () =>
  shopWith((posts) => [
    { ...posts[0], data: { ...posts[0]?.data, category: "Match Report", tags: ["b"] } } as (typeof posts)[0],
    { ...posts[1], status: "draft" } as (typeof posts)[0],
    ...posts.slice(2),
    { ...posts[0], id: idOf(9), data: { title: "Nine", price: 9, tags: ["a", "c"] } } as (typeof posts)[0],
  ]);

/** Other settings of posts, a type that is gone, one that is new, and one that is published. */
const remodelled = () => {
  const { types, ...bundle } = withTypes(
    changedType("posts", { per_page: 3, filterable_fields: ["category", "title", "price"], sortable_fields: [] }),
    changedType("secrets", { published: true }),
    { ...changedType("authors", {}), slug: "readers" },
  );
  return { ...bundle, types: types.filter(({ slug }) => slug !== "notes") };
};

const CHANGES: [string, () => Bundle][] = [
  ["edits", edited],
  ["other content types", remodelled],
  ["nothing", shop],
  ["another app", () => ({ ...shop(), app: { key: "other", name: "Other" } })],
];

describe.each(["postgres", "embedded"] as const)("a bundle, on %s", (engine) => {
  let here: Place;
  beforeAll(async () => {
    here = engine === "postgres" ? place : await openEmbeddedPlace();
  });
  afterAll(async () => {
    if (here !== place) await here.close();
  });
  const database = <T>(use: (database: Database) => Promise<T>) => {
    const env: Record<string, string> = engine === "postgres" ? { DATABASE_URL: store.url ?? "" } : {};
    return withDatabase({ ...readSettings(COMMON_NAMES, {}, env), dataDir: join(here.folder, ".precast") }, use);
  };
  const tree = () => readTree(join(here.folder, "out"));
  // Each command opens the embedded database anew, which takes seconds.
  const changes = engine === "postgres" ? CHANGES : CHANGES.slice(0, 1);

  test.each(changes)(
    "is planned as its import and a build then are, and nothing of it stays: %s",
    async (_, change) => {
      await here.import(shop());
      await here.build();
      const bundle = await written(change(), here);
      const [rows, files] = [await database(dump), tree()];
      const plan = await here.json<PlanReport>(`plan ${bundle} --prune`);
      expect(await database(dump)).toEqual(rows);
      expect(tree()).toEqual(files);
      await here.import(change());
      await here.build();
      expect(sumsOf(plan)).toEqual(compareTrees(files, tree()));
      expect(plan.apps.map(({ key }) => key)).toEqual([change().app.key]);
    },
  );
});

describe("a bundle", () => {
  test("is compared with the tree by a build that is incremental where that can be", async () => {
    await place.import(shop());
    await place.build();
    const { apps } = await place.json<PlanReport>(`plan ${await written(edited())}`);
    expect(apps).toEqual([expect.objectContaining({ key: SHOP, mode: "incremental", has_tree: true })]);
  });

  test("is all new where there is no tree, and says so", async () => {
    await place.import(shop());
    const { code, stdout } = await place.call(`plan ${await written(edited())}`);
    expect([code, stdout]).toEqual([0, expect.stringContaining("no tree to compare with: everything is new")]);
    const plan = await place.json<PlanReport>(`plan ${await written(edited())}`);
    await place.import(edited());
    await place.build();
    expect(sumsOf(plan)).toEqual(compareTrees(new Map(), readTree(join(place.folder, "out"))));
  });

  test("keeps what it lacks, as an import without --prune does", async () => {
    await place.import(shop());
    await place.build();
    const { total } = await place.json<PlanReport>(`plan ${await written({ ...shop(), types: [], entries: {} })}`);
    expect(total).toEqual({ added: 0, changed: 0, gone: 0, written: 0, growth: 0 });
  });

  test("announces nothing, and no other publication waits for the plan", async () => {
    await place.import(shop());
    await place.build();
    const bundle = await written(edited());
    const listener = new Client({ connectionString: store.url ?? "" });
    const announced: (string | undefined)[] = [];
    listener.on("notification", ({ payload }) => announced.push(payload));
    await listener.connect();
    const activity = await openActivity(store.url ?? "");
    try {
      await listener.query("LISTEN precast");
      // Read last, when all of the bundle is written.
      await activity.lock("precast.usage");
      const planned = place.call(`plan ${bundle}`);
      const waiting = "SELECT 1 FROM pg_locks WHERE NOT granted";
      await until("the plan to wait", async () => (await activity.query(waiting)).length > 0);
      await activity.query("SET lock_timeout = '20s'");
      await activity.query(`INSERT INTO precast.entries (content_type_id, id, status, published_at, data)
        SELECT content_type_id, '${idOf(50)}', status, published_at, data FROM precast.entries WHERE id = '${idOf(3)}'`);
      await activity.query(`UPDATE precast.entries SET data = data || '{"title":"Third"}' WHERE id = '${idOf(3)}'`);
      await activity.unlock();
      expect((await planned).code).toBe(0);
      await listener.query("NOTIFY precast, 'after the plan'");
      await until("the last announcement", async () => announced.at(-1) === "after the plan");
      expect(announced).toEqual(["", "", "after the plan"]);
    } finally {
      await activity.close();
      await listener.end();
    }
  });
});

describe("a content type", () => {
  const modelOf = (type: BundleType) => {
    const folder = mkdtempSync(join(place.folder, "model-"));
    const file = join(folder, `${type.slug}.json`);
    writeFileSync(file, JSON.stringify(type));
    return file;
  };
  const fieldsOf = (change: (fields: BundleType["fields"]) => BundleType["fields"]) => ({
    fields: change(changedType("posts", {}).fields),
  });

  test.each<[string, () => BundleType]>([
    [
      "with other filters and sorts",
      () => changedType("posts", { filterable_fields: ["title", "tags"], sortable_fields: ["title"] }),
    ],
    ["with other pages and another order", () => changedType("posts", { per_page: 50, default_sort: "title" })],
    ["with another description", () => changedType("posts", { description: "Posts of the shop" })],
    ["that is no longer published", () => changedType("posts", { published: false })],
    ["that is new", () => ({ ...changedType("posts", {}), slug: "pages" })],
    [
      "with other fields",
      () =>
        changedType("posts", {
          ...fieldsOf((fields) => [
            ...fields.filter(({ name }) => name !== "body" && name !== "active").reverse(),
            { name: "extra", type: "json", label: "Extra", required: false, searchable: false },
          ]),
          filterable_fields: ["category", "price"],
        }),
    ],
    [
      "with fields of other types",
      () =>
        changedType(
          "posts",
          fieldsOf((fields) =>
            fields.map((field) => {
              if (field.name === "category") return { ...field, type: "text" as const };
              if (field.name === "price") return { ...field, type: "select" as const };
              return field.name === "day" ? { ...field, type: "datetime" as const } : field;
            }),
          ),
        ),
    ],
  ])("is planned as a bundle with it is: %s", async (_, type) => {
    await place.import(shop());
    await place.build();
    const model = modelOf(type());
    const folder = await written({ app: shop().app, types: [type()], entries: {} });
    const plans = [
      await place.json<PlanReport>(`plan ${folder}`),
      await place.json<PlanReport>(`plan --model ${model}`),
    ];
    expect(plans[1]?.files).toEqual(plans[0]?.files);
    expect(plans[1]?.usage).toEqual(plans[0]?.usage);
    const tree = readTree(join(place.folder, "out"));
    await place.call(`import ${folder}`);
    await place.build();
    expect(sumsOf(plans[1] as PlanReport)).toEqual(compareTrees(tree, readTree(join(place.folder, "out"))));
  });

  test("loses the fields that it lacks with --prune", async () => {
    await place.import(shop());
    await place.build();
    const model = modelOf(
      changedType(
        "posts",
        fieldsOf((fields) => fields.filter(({ name }) => name !== "cover")),
      ),
    );
    expect((await place.json<PlanReport>(`plan --model ${model}`)).total.changed).toBe(0);
    expect((await place.json<PlanReport>(`plan --model ${model} --prune`)).total.changed).toBeGreaterThan(10);
  });

  test("is planned by a session that may only read", async () => {
    await place.import(shop());
    await place.build();
    const url = new URL(store.url ?? "");
    url.searchParams.set("options", "-c default_transaction_read_only=on");
    const line = `plan --model ${modelOf(changedType("posts", { per_page: 3 }))}`;
    const { files } = await place.json<PlanReport>(line, { DATABASE_URL: url.href });
    expect(files).toEqual((await place.json<PlanReport>(line)).files);
    expect(files.map(({ kind }) => kind)).toEqual(["filters", "pages", "sorts"]);
  });

  test("makes requests free or counted, and says how many the ledger has of them", async () => {
    await place.import(shop());
    const days = [0, 29, 30].map((days) => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10));
    const rows = [
      [SHOP, days[0], "list", 400, "posts", "title", 7],
      [SHOP, days[1], "list", 400, "posts", "title", 5],
      [SHOP, days[2], "list", 400, "posts", "title", 1_000],
      [SHOP, days[0], "list", 400, "posts", "price,title", 100],
      [SHOP, days[0], "list", 400, "authors", "title", 100],
      ["other", days[0], "list", 400, "posts", "title", 100],
      [SHOP, days[0], "list", 200, "posts", "price", 3],
      [SHOP, days[0], "list", 200, "posts", "category,price", 4],
      [SHOP, days[0], "list", 200, "posts", "category", 100],
      [SHOP, days[0], "search", 200, "posts", "price", 100],
    ];
    await store.database.query(
      sql(
        `INSERT INTO precast.usage (app_key, day, shape, status, type, fields, count)
         SELECT row ->> 0, (row ->> 1)::date, row ->> 2, (row ->> 3)::int, row ->> 4, row ->> 5, (row ->> 6)::int
         FROM jsonb_array_elements($1::jsonb) AS row`,
        [JSON.stringify(rows)],
      ),
    );
    const filters = ["category", "tags", "active", "day", "author_id", "title"];
    const model = modelOf(changedType("posts", { filterable_fields: filters, sortable_fields: ["price", "title"] }));
    const { usage } = await place.json<PlanReport>(`plan --model ${model}`);
    const change = { app: SHOP, type: "posts" };
    expect(usage).toEqual({
      since: days[1],
      until: days[0],
      changes: [
        { ...change, request: "/api/v1/posts?filter[price]=…", becomes: "counted", requests: 7 },
        { ...change, request: "/api/v1/posts?filter[title]=…", becomes: "free", requests: 12 },
        { ...change, request: "/api/v1/posts?sort=title", becomes: "free", requests: 12 },
      ],
    });
    const { stdout } = await place.call(`plan --model ${model}`);
    expect(stdout).toContain(
      `${SHOP}: /api/v1/posts?filter[title]=… becomes free: up to 12 requests that were refused and counted from ${days[1]} to ${days[0]}\n`,
    );
  });

  test.each<[string, string, string, string]>([
    ["no JSON", "{", "posts.json", "posts.json:1: is not valid JSON"],
    ["no content type", '{"slug":"posts"}', "posts.json", 'posts.json: "name" is missing: it must be a string'],
    ["an unknown field", JSON.stringify(changedType("posts", { filterable_fields: ["nope"] })), "posts.json", '"nope"'],
    ["another name", JSON.stringify(changedType("posts", {})), "other.json", "other.json"],
    [
      "a hidden type",
      JSON.stringify(changedType("secrets", { published: true })),
      "secrets.json",
      "plan a bundle with it",
    ],
  ])("that is wrong is refused: %s", async (_, text, name, message) => {
    await place.import(shop());
    const folder = mkdtempSync(join(place.folder, "model-"));
    writeFileSync(join(folder, name), text);
    const { code, stdout, stderr } = await place.call(`plan --model ${join(folder, name)}`);
    expect([code, stdout, stderr]).toEqual([1, "", expect.stringContaining(message)]);
  });
});

describe("without a bundle", () => {
  test("the next build of each app is planned, or that of one", async () => {
    await place.import(shop());
    await place.import({ ...shop(), app: { key: "gone", name: "Gone" } });
    await place.build();
    await place.import(edited());
    await store.database.execute("DELETE FROM precast.apps WHERE key = 'gone'");
    const before = readTree(join(place.folder, "out"));
    const [all, one] = [await place.json<PlanReport>("plan"), await place.json<PlanReport>(`plan --app ${SHOP}`)];
    expect(all.apps.map(({ key, mode }) => [key, mode])).toEqual([
      [SHOP, "incremental"],
      ["gone", "removal"],
    ]);
    expect(one.files).toEqual(all.files.filter(({ app }) => app === SHOP));
    await place.build();
    const after = readTree(join(place.folder, "out"));
    const shopAlone = (tree: ReadonlyMap<string, string>) =>
      new Map([...tree].filter(([path]) => !path.startsWith("s-gone/")));
    expect(sumsOf(one)).toEqual(compareTrees(shopAlone(before), shopAlone(after)));
    expect(all.total.gone - one.total.gone).toBe(before.size - shopAlone(before).size);
  });
});

describe("what it costs", () => {
  test("a deploy sends the requests that were planned", async () => {
    const s3 = await startS3();
    try {
      await place.import(shop());
      await place.build();
      const deploy = `deploy s3://content/api --endpoint ${s3.url} --path-style`;
      expect((await place.call(deploy, s3.env)).code).toBe(0);
      s3.requests.length = 0;
      const { requests, total } = await place.json<PlanReport>(`plan ${await written(edited())}`);
      await place.import(edited());
      await place.build();
      expect((await place.call(deploy, s3.env)).code).toBe(0);
      const sent = (method: string, isOwn: boolean) =>
        s3.requests.filter((request) => request.method === method && request.key.includes(".precast") === isOwn).length;
      expect([sent("PUT", false), sent("DELETE", false)]).toEqual([total.added + total.changed, total.gone]);
      const own = [requests.put - total.added - total.changed, requests.delete - total.gone];
      expect([sent("PUT", true), sent("DELETE", true)]).toEqual(own);
      // Targets of several apps have one more file, and reads are many times cheaper.
      expect(Math.abs(sent("GET", true) - requests.get)).toBeLessThanOrEqual(2);
    } finally {
      await s3.close();
    }
  });

  test("the widest publication writes as many files as the entry with most values does", async () => {
    await place.import(shop());
    const { widest_publication: widest } = await place.json<PlanReport>("plan");
    await place.import(shopWithout(1));
    await place.build();
    await place.import(shop());
    const { total } = await place.json<PlanReport>("plan");
    // Of the first post: two pages; category, two tags, price, active, day, author; three timestamps and price, both ways.
    expect(widest).toEqual({ app: SHOP, type: "posts", files: 19, pages: 2, filters: 7, sorts: 8 });
    expect(total.added + total.changed).toBe(19);
  });

  test("a CDN is purged by tags, paths or addresses", async () => {
    await place.import(shop());
    await place.build();
    const bundle = await written(edited());
    const { purge, total } = await place.json<PlanReport>(`plan ${bundle}`);
    await place.import(edited());
    await place.build();
    const { changes } = JSON.parse(readFileSync(join(place.folder, "out/.precast/changes.json"), "utf8")) as {
      changes: { app: string; type: string | null; request: string | null }[];
    };
    expect(purge.addresses).toBe(changes.filter(({ request }) => request !== null).length);
    expect(purge.tags).toBe(new Set(changes.map(({ app, type }) => `${app}/${type ?? "_schemas"}`)).size);
    expect(purge.paths).toBeGreaterThan(1);
    expect(purge.paths).toBeLessThanOrEqual(total.added + total.changed + total.gone + 2);
  });

  test("prices are told with the day on which they were true", async () => {
    await place.import(shop());
    const { price, requests } = await place.json<PlanReport>("plan --prices s3");
    expect(price?.requests).toBeCloseTo((requests.put * 0.005 + requests.get * 0.0004) / 1_000, 9);
    expect((await place.call("plan --prices s3")).stdout).toMatch(
      /Price: \$0\.\d+ for requests; .*prices of 20\d\d-\d\d\)/,
    );
    expect((await place.json<PlanReport>("plan")).price).toBe(null);
  });
});

test.each([
  ["s3", 0.05, 0.23],
  ["r2", 0.045, 0.15],
  ["gcs", 0.05, 0.186],
  ["b2", 0, 0.06],
] as const)("%s charges for uploads and storage, and nothing for deletions", (name, requests, storage) => {
  const none = { put: 0, get: 0, delete: 0 };
  expect(priceDeploy(name, { ...none, put: 10_000, delete: 10_000 }, 10e9, -5e9)).toMatchObject({
    ...{ store: name, requests, storage, storage_growth: -storage / 2 },
  });
  expect(priceDeploy(name, { ...none, get: 1_000_000 }, 0, 0).requests).toBeGreaterThan(0.3);
  expect(priceDeploy(name, countRequests(0, 0, 0), 0, 0)).toMatchObject({ requests: 0, storage: 0 });
});

describe("a budget", () => {
  beforeEach(() => place.import(shop()));

  test("that is kept ends with 0, one that is exceeded with 2 and by how much", async () => {
    const { total, requests } = await place.json<PlanReport>("plan");
    const kept = `files=${total.added},bytes=${total.written},requests=${requests.put + requests.get + requests.delete},usd=1`;
    expect((await place.call(`plan --prices s3 --budget ${kept}`)).code).toBe(0);
    const { code, stdout } = await place.call(`plan --prices s3 --budget files=${total.added - 3},usd=0`);
    expect(code).toBe(2);
    expect(stdout).toContain(`Budget: files is ${total.added}, 3 above the limit of ${total.added - 3}\n`);
    expect(stdout).toMatch(/Budget: usd is 0\.0\d+, 0\.0\d+ above the limit of 0\n/);
  });

  test.each([
    ["--budget file=3", "must be limits such as files=20000,usd=5: of files, bytes, requests and usd, each a number"],
    ["--budget files=many", "must be limits such as"],
    ["--budget usd=1", "--budget usd=… has no effect without --prices"],
    ["--prices azure", "--prices must be one of s3, r2, gcs, b2"],
    ["--app nobody", "No app has the key nobody"],
    ["nowhere", "nowhere"],
    ["nowhere --model posts.json", "leave out --model, or the bundle"],
    ["--model nowhere.json", "--model nowhere.json cannot be read"],
  ])("or another option that is wrong is refused: %s", async (line, message) => {
    const { code, stdout, stderr } = await place.call(`plan ${line}`);
    expect([code, stdout, stderr]).toEqual([1, "", expect.stringContaining(message)]);
  });

  test("another app than that of the bundle is refused, and nothing is imported", async () => {
    const rows = await dump(store.database);
    const { code, stderr } = await place.call(`plan ${await written(edited())} --app other`);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^--app is other, but .* is a bundle of Shop\.\n$/)]);
    expect(await dump(store.database)).toEqual(rows);
  });
});

test("a summary has two tables for the page of a pull request", async () => {
  await place.import(shop());
  const file = join(place.folder, "deep", "summary.md");
  mkdirSync(join(place.folder, "deep"), { recursive: true });
  expect((await place.call(`plan --prices r2 --budget files=1 --summary ${file}`)).code).toBe(2);
  const text = readFileSync(file, "utf8");
  expect(text).toMatch(/^\n### Precast plan\n\n\| App \| Type \| Kind \| Added \|.*\n\| --- \| --- \| --- \| ---: \|/);
  expect(text).toMatch(/\n### Precast plan: what it costs\n\n/);
  expect(text).toMatch(/\| Budget \| files is \d+, \d+ above the limit of 1 \|\n$/);
});
