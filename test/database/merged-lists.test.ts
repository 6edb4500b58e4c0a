/** Lists of the entries with one of several values: right on every page, and found without passing all of them. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { measureQuery } from "../../cli/explain/explanation.ts";
import type { App } from "../../shared/api/catalog.ts";
import { buildQuery } from "../../shared/live.ts";
import type { SlotCache, Slots } from "../../shared/sql/columns.ts";
import type { Query } from "../../shared/sql/query.ts";
import { pageOf, pagePlan } from "../support/live-page.ts";
import { rowsReadFrom } from "../support/plan-rows.ts";
import { ENGINES, openStore, type Store } from "../support/site.ts";
import { addGoods, openShop } from "../support/stock.ts";

const SIZE = 1_500;

type Data = {
  readonly code: string;
  readonly sold: boolean;
  readonly color?: string;
  readonly price?: number;
  readonly day?: string;
};
type Good = { readonly id: string; readonly published: number; readonly data: Data };

/** Three at a time are published at once, and many have the same price or day. Some have no color, no price or no day. */
function goodOf(number: number): Good {
  const place = (7_919 * number) % SIZE;
  const day = `2026-01-${String(1 + (place % 28)).padStart(2, "0")}`;
  return {
    id: `00000000-0000-4000-8000-${place.toString(16).padStart(12, "0")}`,
    published: Date.UTC(2026, 0, 1) + Math.floor(number / 3) * 60_000,
    data: {
      code: `A${number % 1_000}`,
      sold: number % 3 === 0,
      ...(number % 10 === 9 ? {} : { color: `c${number % 10}` }),
      ...(number % 11 === 0 ? {} : { price: (number * 37) % 60 }),
      ...(number % 13 === 0 ? {} : { day }),
    },
  };
}

const GOODS = Array.from({ length: SIZE }, (_, number) => goodOf(number));

/** The ids of the goods that pass, in the order by the key, which each of them has, and newest first. */
function idsOf(passes: (data: Data) => boolean, key: "price" | "day" | null, descending: boolean): string[] {
  const newest = (one: Good, other: Good) => other.published - one.published || one.id.localeCompare(other.id);
  const byKey = (one: Good, other: Good) => {
    const [a, b] = key === null ? [0, 0] : [one.data[key] ?? 0, other.data[key] ?? 0];
    return (a < b ? -1 : Number(a > b)) * (descending ? -1 : 1);
  };
  const found = GOODS.filter(({ data }) => passes(data));
  return found.sort((one, other) => byKey(one, other) || newest(one, other)).map(({ id }) => id);
}

type Asked = { readonly query: string; readonly ids: readonly string[] };

const within = (values: readonly unknown[], value: unknown) => values.includes(value);

const NEWEST_FIRST: readonly Asked[] = [
  { query: "filter[color][in]=c3,c5", ids: idsOf(({ color }) => within(["c3", "c5"], color), null, false) },
  { query: "filter[color][in]=c3,none,c3", ids: idsOf(({ color }) => color === "c3", null, false) },
  { query: "filter[color][in]=none,nowhere", ids: [] },
  { query: "filter[sold][in]=true,1,false", ids: idsOf(() => true, null, false) },
  { query: "filter[code][in]=A7,A998,A1000", ids: idsOf(({ code }) => within(["A7", "A998"], code), null, false) },
  { query: "filter[price][in]=1,1.0,2e1,59", ids: idsOf(({ price }) => within([1, 20, 59], price), null, false) },
  {
    query: "filter[day][in]=2026-01-05,2026-01-06T10:00Z&per_page=7",
    ids: idsOf(({ day }) => within(["2026-01-05", "2026-01-06"], day), null, false),
  },
  {
    query: "filter[color][in]=c0,c1,c2,c3,c4,c5,c6,c7",
    ids: idsOf(({ color }) => color !== undefined && color !== "c8", null, false),
  },
  // More values than have a placeholder each.
  {
    query: "filter[color][in]=c0,c1,c2,c3,c4,c5,c6,c7,c8",
    ids: idsOf(({ color }) => color !== undefined, null, false),
  },
];

const BY_RANGE: readonly Asked[] = [
  {
    query: "filter[color]=c3&filter[price][gte]=20&sort=price",
    ids: idsOf(({ color, price = -1 }) => color === "c3" && price >= 20, "price", false),
  },
  {
    query: "filter[price][gt]=20&filter[color][in]=c3,c4,c3&sort=-price",
    ids: idsOf(({ color, price = -1 }) => within(["c3", "c4"], color) && price > 20, "price", true),
  },
  {
    query: "filter[color][in]=c3,c4,c8&filter[price][gt]=10&filter[price][lte]=12&sort=-price&per_page=3",
    ids: idsOf(
      ({ color, price = -1 }) => within(["c3", "c4", "c8"], color) && price > 10 && price <= 12,
      "price",
      true,
    ),
  },
  { query: "filter[color][in]=c3,c4&filter[price][lt]=-1&sort=price", ids: [] },
  {
    query: "filter[color][in]=c2,c6&filter[day][lt]=2026-01-09&sort=day",
    ids: idsOf(({ color, day = "~" }) => within(["c2", "c6"], color) && day < "2026-01-09", "day", false),
  },
  {
    query: "filter[color]=c2&filter[day][gte]=2026-01-20T12:00Z&filter[sold]=true&sort=-day",
    ids: idsOf(({ color, day = "", sold }) => color === "c2" && day >= "2026-01-20" && sold === true, "day", true),
  },
];

describe.each(ENGINES)("on %s", (engine) => {
  let store: Store;
  let app: App;
  /** As a server keeps it. */
  const cache: SlotCache = new Map();

  beforeAll(async () => {
    store = await openStore(engine);
    const fields = [
      { name: "color", type: "select" },
      { name: "code", type: "text" },
      { name: "sold", type: "boolean" },
      { name: "price", type: "number" },
      { name: "day", type: "date" },
    ] as const;
    const filterable_fields = fields.map(({ name }) => name);
    app = await openShop(store, [{ fields, filterable_fields, sortable_fields: ["price", "day"] }]);
    // Of these statistics the first part of the tests makes use: they do not know the type.
    await store.database.execute("ANALYZE precast.entries");
    await addGoods(store.database, GOODS);
  });
  afterAll(() => store.close());

  async function page(query: string): Promise<{ total: number; ids: string[] }> {
    const { total, items } = await pageOf(store.database, app, `goods?${query}`, cache);
    return { total, ids: items.map(({ id }) => id) };
  }

  async function checkPages({ query, ids }: Asked): Promise<void> {
    const size = pagePlan(app, `goods?${query}`).perPage;
    for (let number = 1; number <= 2 + ids.length / size; number++)
      expect(await page(`${query}&page=${number}`), `page ${number}`).toEqual({
        total: ids.length,
        ids: ids.slice(size * (number - 1), size * number),
      });
    expect(await page(`${query}&page=900000000000000000000`)).toEqual({ total: ids.length, ids: [] });
  }

  /** How many rows of entries are read for a page and its total. */
  async function rowsReadFor(query: string): Promise<number> {
    await page(query);
    const slots = cache.get("shop goods") as Slots;
    const { root } = await measureQuery(
      store.database,
      buildQuery(app, pagePlan(app, `goods?${query}`), slots) as Query,
    );
    return rowsReadFrom(root, "entries");
  }

  test.each(NEWEST_FIRST)("newest first, every page holds its entries in their order: $query", checkPages);
  test.each(BY_RANGE)("by a range, every page holds its entries in their order: $query", checkPages);

  test("newest first, the page is looked up value by value, whether or not the statistics know the type", async () => {
    const check = async () => {
      // As many as the page holds for each of two values, and then the page itself.
      expect(await rowsReadFor("filter[color][in]=c3,c5")).toBeLessThanOrEqual(3 * 20);
      expect(await rowsReadFor("filter[color][in]=c3,c5&page=3")).toBeLessThanOrEqual(2 * 60 + 20);
    };
    await check();
    await store.database.execute("VACUUM ANALYZE precast.entries");
    await check();
  });
});
