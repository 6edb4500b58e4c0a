/** Lists of the entries with an element of a `multiple` field: right on every page, wherever in the order they stand. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { App } from "../../shared/api/catalog.ts";
import type { SlotCache } from "../../shared/sql/columns.ts";
import { measuredPage, pageOf } from "../support/live-page.ts";
import { rowsReadFrom } from "../support/plan-rows.ts";
import { ENGINES, openStore, type Store } from "../support/site.ts";
import { addGoods, openShop } from "../support/stock.ts";

/** Entries by number, the oldest first. Those from SOLD on have no price; the price of the others is their number. */
const SIZE = 6_000;
const SOLD = 5_900;
/** Which entries have each tag. */
const TAGS: Readonly<Record<string, (number: number) => boolean>> = {
  oldest: (number) => number < 400,
  newest: (number) => number >= SIZE - 400,
  spread: (number) => number % 15 === 0,
  rare: (number) => number < 30,
};

describe.each(ENGINES)("on %s", (engine) => {
  let store: Store;
  let app: App;
  const cache: SlotCache = new Map();

  beforeAll(async () => {
    store = await openStore(engine);
    const fields = [
      { name: "tags", type: "select", multiple: true },
      { name: "price", type: "number" },
    ] as const;
    app = await openShop(store, [{ fields, filterable_fields: ["tags"], sortable_fields: ["price"] }]);
    const goods = Array.from({ length: SIZE }, (_, number) => ({
      published: Date.UTC(2026, 0, 1) + number * 60_000,
      data: {
        tags: Object.keys(TAGS).filter((tag) => TAGS[tag]?.(number)),
        ...(number < SOLD ? { price: number } : {}),
      },
    }));
    await addGoods(store.database, goods);
    await store.database.execute("VACUUM ANALYZE");
  });
  afterAll(() => store.close());

  /** The numbers of the entries on a page. */
  async function page(parameters: string): Promise<number[]> {
    const { items } = await pageOf(store.database, app, `goods?${parameters}`, cache);
    return items.map(({ published_at }) => (Date.parse(published_at) - Date.UTC(2026, 0, 1)) / 60_000);
  }

  const SORTS: Readonly<Record<string, (one: number, other: number) => number>> = {
    "-published_at": (one, other) => other - one,
    price: (one, other) => Number(one >= SOLD) - Number(other >= SOLD) || (one >= SOLD ? other - one : one - other),
    "-price": (one, other) => Number(one >= SOLD) - Number(other >= SOLD) || other - one,
  };

  test.each(Object.keys(TAGS).flatMap((tag) => Object.keys(SORTS).map((sort) => [tag, sort])))(
    "every page holds its entries in their order: %s, sorted by %s",
    async (tag, sort) => {
      const all = Array.from({ length: SIZE }, (_, number) => number).filter((number) => TAGS[tag as string]?.(number));
      all.sort(SORTS[sort as string]);
      for (let number = 0; number <= all.length / 20; number++)
        expect(await page(`filter[tags]=${tag}&sort=${sort}&page=${number + 1}`), `page ${number + 1}`).toEqual(
          all.slice(20 * number, 20 * (number + 1)),
        );
    },
  );

  /** How many rows of entries the database reads to answer, those that it discards included. */
  async function resolveRequest(parameters: string): Promise<number> {
    return rowsReadFrom(await measuredPage(store.database, app, `goods?${parameters}`), "entries");
  }

  test("a page is found without passing all entries, also when those with the element stand at its far end", async () => {
    const many = 400;
    // The scan ends after two entries for each match, then all matches are found and sorted, and the page is read.
    for (const parameters of ["filter[tags]=oldest", "filter[tags]=newest&sort=price"])
      expect(await resolveRequest(parameters), parameters).toBeLessThanOrEqual(3 * many + 20);
    expect(await resolveRequest("filter[tags]=spread")).toBeLessThanOrEqual(20 * 15 + 20);
    expect(await resolveRequest("filter[tags]=newest")).toBeLessThanOrEqual(20 + 20);
  });
});
