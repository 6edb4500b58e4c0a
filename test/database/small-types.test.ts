/** Lists of types with few entries use generic plans, stay right when few entries become many, and need no statistics. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openDatabase } from "../../cli/database.ts";
import type { App } from "../../shared/api/catalog.ts";
import type { Database } from "../../shared/database/database.ts";
import type { SlotCache } from "../../shared/sql/columns.ts";
import { sql } from "../../shared/sql/query.ts";
import { measuredPage, pageOf } from "../support/live-page.ts";
import { nodesOf } from "../support/plan-rows.ts";
import { ENGINES, openStore, type Store } from "../support/site.ts";
import { openShop } from "../support/stock.ts";

const GOODS = {
  per_page: 10,
  fields: [
    { name: "title", type: "text", searchable: true },
    { name: "price", type: "number" },
  ],
  filterable_fields: ["title", "price"],
  sortable_fields: ["price"],
} as const;

describe.each(ENGINES)("on %s", (engine) => {
  let store: Store;
  /** Has one connection: that of the embedded database, or its own. */
  let database: Database;
  let app: App;
  const cache: SlotCache = new Map();

  beforeAll(async () => {
    store = await openStore(engine);
    app = await openShop(store, [GOODS, { ...GOODS, slug: "novelties" }]);
    const { url } = store;
    const own = { url, dataDir: "", queryTimeout: 5_000, connections: 1 };
    database = url === null ? store.database : await openDatabase(own);
  });
  afterAll(async () => {
    if (database !== store.database) await database.close();
    await store.close();
  });

  const add = (from: number, to: number, slug = "goods") =>
    store.database.execute(`INSERT INTO precast.entries (content_type_id, id, status, published_at, data)
      SELECT type.id, gen_random_uuid(), 'published', '2026-01-21T00:00Z', jsonb_build_object('title', 'thing', 'price', n)
      FROM precast.content_types AS type, generate_series(${from}, ${to}) AS n WHERE type.slug = '${slug}'`);

  /** The total, and the prices on the page. */
  async function list(query: string): Promise<[number, ...(number | undefined)[]]> {
    const { total, items } = await pageOf(database, app, `goods?${query}`, cache);
    return [total, ...items.map(({ price }) => price)];
  }

  test("a list with two filters and a sort uses a generic plan for all values", async () => {
    await add(1, 20);
    for (let price = 1; price <= 15; price++)
      expect(await list(`filter[title]=thing&filter[price][gte]=${price}&sort=price&per_page=1`)).toEqual([
        21 - price,
        price,
      ]);
    const plans = "SELECT max(generic_plans)::text, max(custom_plans)::text FROM pg_prepared_statements";
    expect(await database.query(sql(plans))).toEqual([["13", "0"]]);
  });

  test("lists stay right when few entries become many, and when many become few", async () => {
    const lists = () =>
      Promise.all([
        list("filter[title]=thing&filter[price][gte]=10&sort=-price&per_page=2"),
        list("filter[price][lt]=3&sort=price&per_page=5"),
        list("filter[title][neq]=thing&sort=price"),
        list("filter[price][in]=7,8,9&sort=-price&page=2&per_page=2"),
      ]);
    expect(await lists()).toEqual([[11, 20, 19], [2, 1, 2], [0], [3, 7]]);
    await add(21, 1_000);
    expect(await lists()).toEqual([[991, 1000, 999], [2, 1, 2], [0], [3, 7]]);
    await add(1_001, 1_500);
    expect(await lists()).toEqual([[1491, 1500, 1499], [2, 1, 2], [0], [3, 7]]);
    await store.database.execute("DELETE FROM precast.entries WHERE (data ->> 'price')::int > 20");
    expect(await lists()).toEqual([[11, 20, 19], [2, 1, 2], [0], [3, 7]]);
  });

  test.each([
    ["search", "novelties/search?q=thing&sort=price"],
    ["sorted list", "novelties?sort=price"],
  ])("a %s alone notices that the few entries have become many", async (_, target) => {
    const known: SlotCache = new Map();
    await pageOf(database, app, target, known);
    expect(known.get("shop novelties")).toMatchObject({ isSmall: true });
    await add(1, 1_001, "novelties");
    await pageOf(database, app, target, known);
    expect(known.get("shop novelties")).toMatchObject({ isSmall: false });
    await database.execute(
      "DELETE FROM precast.entries WHERE content_type_id = (SELECT id FROM precast.content_types WHERE slug = 'novelties')",
    );
  });

  test("a list gets custom plans once the few entries have become many", async () => {
    await add(21, 1_100);
    for (let price = 1; price <= 12; price++)
      expect(await list(`filter[title]=thing&filter[price][lte]=${price}&sort=-price&per_page=1`)).toEqual([
        price,
        price,
      ]);
    const plans = `SELECT custom_plans::text FROM pg_prepared_statements WHERE statement LIKE '%<= $%' ORDER BY prepare_time DESC LIMIT 1`;
    expect(Number((await database.query(sql(plans)))[0]?.[0])).toBeGreaterThanOrEqual(5);
  });

  /** The plan of a request for novelties, with what each of its parts has done. */
  const planOf = (target: string) => measuredPage(database, app, `novelties${target}`);

  test("a connection that was used to explain answers what it has answered before", async () => {
    const again = () => list("filter[title]=thing&filter[price][gte]=3&sort=price&per_page=1");
    for (let time = 1; time <= 5; time++) await again();
    const before = await again();
    await planOf("?filter[price][gte]=3&sort=price&per_page=1");
    expect(await again()).toEqual(before);
  });

  /** The most rows that a part of the plan reads or makes to answer the request, all its repetitions together. */
  async function mostRows(target: string): Promise<number> {
    const nodes = nodesOf(await planOf(target)).filter(({ step }) => step !== "Bitmap Index Scan");
    return Math.max(...nodes.map(({ rows }) => rows.actual ?? 0));
  }

  test.each([
    ["few", 1, 300],
    ["many", 301, 1_500],
  ])(
    "no list or search reads %s entries again for each of them while the statistics do not know the type",
    async (_, from, to) => {
      if (from === 1) await store.database.execute("ANALYZE precast.entries, precast.entry_words");
      await add(from, to, "novelties");
      for (const target of [
        "?sort=price&page=2&per_page=100",
        "?filter[title][contains]=in&per_page=100",
        "/search?q=in&sort=price&per_page=100",
        "/search?q=in&filter[price][neq]=7",
      ])
        expect(await mostRows(target), target).toBeLessThanOrEqual(to + 1);
    },
  );

  test("a search for what many entries contain begins with the entries of a filter that few pass", async () => {
    await add(1_501, 6_000, "novelties");
    const search = "/search?q=in&filter[price]=7";
    const nodes = nodesOf(await planOf(search));
    expect(nodes.map(({ index }) => index)).toContainEqual(expect.stringMatching(/^entries_by_n\d$/));
    // So many of the entries with the word are counted first.
    expect(await mostRows(search)).toBeLessThanOrEqual(5_001);
  });

  test("a search for many words looks up four of them, the longest ones", async () => {
    const conditions = (q: string) =>
      planOf(`/search?q=${q}`).then((plan) => nodesOf(plan).flatMap(({ condition }) => condition?.match(/&&/g) ?? []));
    expect(await conditions("a+b+c+t+h+i+n+g+thing+z")).toHaveLength(4);
    // What no entry has is found at once, though it stands last, and no entry is read.
    expect(await mostRows("/search?q=in+th+hi+ng+nothing")).toBeLessThanOrEqual(100);
  });
});
