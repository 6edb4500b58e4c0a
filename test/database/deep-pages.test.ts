/** Pages deep in a list: right in every order in which they are asked for. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { App, Field } from "../../shared/api/catalog.ts";
import type { SlotCache } from "../../shared/sql/columns.ts";
import { sql } from "../../shared/sql/query.ts";
import { pageOf } from "../support/live-page.ts";
import { ENGINES, openStore, type Store } from "../support/site.ts";
import { addGoods, openShop } from "../support/stock.ts";

const SIZE = 3_000;

type Good = {
  readonly id: string;
  readonly published: number;
  readonly created: number;
  readonly title: string;
  readonly color: string;
  readonly price: number | null;
  readonly sold: boolean;
};

/** Four at a time are published at once. Many have the same price, and the last five hundred have none. */
function goodOf(number: number): Good {
  const place = (7_919 * number) % SIZE;
  return {
    id: `00000000-0000-4000-8000-${place.toString(16).padStart(12, "0")}`,
    published: Date.UTC(2026, 0, 1) + Math.floor(number / 4) * 60_000,
    created: Date.UTC(2025, 0, 1) + (place % 1_100) * 60_000,
    title: `${place % 2 === 0 ? "thing" : "Thing"} ${String(place % 1_400).padStart(4, "0")}`,
    color: `c${number % 2}`,
    price: number < 2_500 ? (number * 37) % 250 : null,
    sold: number % 3 === 0,
  };
}

type Compare = (one: Good, other: Good) => number;
const newest: Compare = (one, other) => other.published - one.published || (one.id < other.id ? -1 : 1);
const priceOf = ({ price }: Good, last: number) => price ?? last;
/** As the collation does: by the words first, and by their case last. */
const titled: Compare = (one, other) =>
  one.title.toLowerCase() === other.title.toLowerCase()
    ? Number(one.title > other.title ? -1 : one.title < other.title)
    : Number(one.title.toLowerCase() > other.title.toLowerCase()) * 2 - 1;

const LISTS: Readonly<Record<string, readonly [passes: (good: Good) => boolean, order: Compare]>> = {
  "sort=title": [() => true, (a, b) => titled(a, b) || newest(a, b)],
  "sort=-title": [() => true, (a, b) => titled(b, a) || newest(a, b)],
  "sort=price": [() => true, (a, b) => priceOf(a, 1e9) - priceOf(b, 1e9) || newest(a, b)],
  "sort=-price": [() => true, (a, b) => priceOf(b, -1) - priceOf(a, -1) || newest(a, b)],
  "sort=-sold": [() => true, (a, b) => Number(b.sold) - Number(a.sold) || newest(a, b)],
  "sort=published_at": [() => true, newest],
  "sort=created_at": [() => true, (a, b) => b.created - a.created || newest(a, b)],
  "filter[color]=c1": [({ color }) => color === "c1", newest],
  "filter[color][neq]=c1": [({ color }) => color !== "c1", newest],
  "filter[price][gte]=50&sort=price": [
    ({ price }) => (price ?? -1) >= 50,
    (a, b) => priceOf(a, 0) - priceOf(b, 0) || newest(a, b),
  ],
};

describe.each(ENGINES)("on %s", (engine) => {
  let store: Store;
  let app: App;
  let goods: Good[] = Array.from({ length: SIZE }, (_, number) => goodOf(number));

  beforeAll(async () => {
    store = await openStore(engine);
    const fields = [
      { name: "title", type: "text" },
      { name: "color", type: "select" },
      { name: "price", type: "number" },
      { name: "sold", type: "boolean" },
    ] as const;
    const sortable_fields = ["title", "price", "sold"];
    app = await openShop(store, [{ fields, filterable_fields: ["color", "price"], sortable_fields }]);
    await insert(goods);
    await store.database.execute("VACUUM ANALYZE");
  });
  afterAll(() => store.close());

  const insert = (some: readonly Good[]) =>
    addGoods(
      store.database,
      some.map(({ id, published, created, ...data }) => ({ id, published, created, data })),
    );

  async function page(list: string, number: number, cache: SlotCache) {
    const { total, items } = await pageOf(store.database, app, `goods?${list}&page=${number}`, cache);
    return [total, ...items.map(({ id }) => id)];
  }

  function idsOf(list: string): string[] {
    const [passes, order] = LISTS[list] as (typeof LISTS)[string];
    return goods
      .filter(passes)
      .sort(order)
      .map(({ id }) => id);
  }

  const expected = (ids: readonly string[], number: number) => [
    ids.length,
    ...ids.slice(20 * (number - 1), 20 * number),
  ];

  test.each(Object.keys(LISTS))("one page after the other: %s", async (list) => {
    const cache: SlotCache = new Map();
    const ids = idsOf(list);
    for (let number = 24; number <= ids.length / 20 + 2; number += number < 60 || number > 110 ? 1 : 5)
      expect(await page(list, number, cache), `page ${number}`).toEqual(expected(ids, number));
  });

  test.each(Object.keys(LISTS))("in any order: %s", async (list) => {
    const cache: SlotCache = new Map();
    const ids = idsOf(list);
    const count = Math.ceil(ids.length / 20) + 1;
    for (let turn = 0; turn < count; turn += 3) {
      const number = 1 + ((turn * 61) % count);
      expect(await page(list, number, cache), `page ${number}`).toEqual(expected(ids, number));
    }
  });

  test("after a page that was read with the type that the sort field had before", async () => {
    const cache: SlotCache = new Map();
    const retyped = (field: Field): Field => (field.name === "price" ? { ...field, type: "text" } : field);
    const types = app.types.map((type) => ({ ...type, fields: type.fields.map(retyped) }));
    await pageOf(store.database, { ...app, types }, "goods?sort=price&page=30", cache);
    expect(await page("sort=price", 31, cache)).toEqual(expected(idsOf("sort=price"), 31));
  });

  test("while entries are published, changed and deleted between two pages", async () => {
    const cache: SlotCache = new Map();
    for (let number = 26; number <= 60; number++) {
      for (const list of ["sort=title", "sort=-price", "filter[color]=c1"])
        expect(await page(list, number, cache), `${list}, page ${number}`).toEqual(expected(idsOf(list), number));
      if (number % 3 > 0) continue;
      const [first, second] = goods.filter(({ color }) => color === "c1") as [Good, Good];
      const changed = { ...second, title: `thing ${number}`, price: number, color: "c0" };
      const added = { ...first, id: `00000000-0000-4000-8000-ff00000000${number}`, title: "A first thing", price: 500 };
      await store.database.query(
        sql("DELETE FROM precast.entries WHERE id = ANY ($1::uuid[])", [[first.id, second.id]]),
      );
      await insert([changed, added]);
      goods = [...goods.filter(({ id }) => id !== first.id && id !== second.id), changed, added];
    }
  });
});
