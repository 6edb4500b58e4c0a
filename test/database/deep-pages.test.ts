/** Pages deep in a list: right in every order in which they are asked for, and read from where the page before has ended. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { measureQuery } from "../../cli/explain/measure.ts";
import { readApp } from "../../shared/apps.ts";
import type { App } from "../../shared/catalog.ts";
import type { Database } from "../../shared/database/database.ts";
import { answerLive } from "../../shared/live.ts";
import { type ListPlan, planRequest } from "../../shared/plan.ts";
import { type Query, sql } from "../../shared/query.ts";
import { type ApiRequest, readRequest } from "../../shared/request.ts";
import type { SlotCache } from "../../shared/sql/slots.ts";
import type { Bundle } from "../support/model.ts";
import { rowsReadFrom } from "../support/plan-rows.ts";
import { ENGINES, loadBundles, openStore, type Store } from "../support/site.ts";

const SHOP: Bundle = {
  app: { key: "shop", name: "Shop" },
  types: [
    {
      slug: "goods",
      name: "Goods",
      description: "",
      icon: "",
      per_page: 20,
      fields: [
        { name: "title", type: "text", label: "Title", required: false, searchable: false },
        { name: "color", type: "select", label: "Color", required: false, searchable: false },
        { name: "price", type: "number", label: "Price", required: false, searchable: false },
        { name: "sold", type: "boolean", label: "Sold", required: false, searchable: false },
      ],
      filterable_fields: ["color", "price"],
      sortable_fields: ["title", "price", "sold"],
    },
  ],
  entries: { goods: [] },
};

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
    await loadBundles(store, [SHOP]);
    await insert(goods);
    await store.database.execute("VACUUM ANALYZE");
    app = (await readApp(store.database, "shop", { mediaBaseUrl: "" })) as App;
  });
  afterAll(() => store.close());

  const insert = (some: readonly Good[]) =>
    store.database.query(
      sql(
        `INSERT INTO precast.entries (content_type_id, id, status, published_at, created_at, data)
         SELECT type.id, (good ->> 'id')::uuid, 'published', to_timestamp((good ->> 'published')::float8 / 1000),
           to_timestamp((good ->> 'created')::float8 / 1000), good - '{id,published,created}'::text[]
         FROM precast.content_types AS type, jsonb_array_elements($1::jsonb) AS good`,
        [JSON.stringify(some)],
      ),
    );

  function planOf(list: string, page: number): ListPlan {
    const target = `/api/v1/goods?${list}&page=${page}`;
    const request = readRequest({ method: "GET", target, appKey: "shop" }) as ApiRequest;
    return planRequest(request, app.types[0]) as ListPlan;
  }

  async function page(
    list: string,
    number: number,
    cache: SlotCache,
    database: Pick<Database, "query"> = store.database,
  ) {
    const answer = await answerLive(database, app, planOf(list, number), cache);
    if ("code" in answer) throw new Error(`${list} is refused`);
    const { data, meta } = JSON.parse(String(answer.body.bytes));
    return [meta.total, ...data.map(({ id }: { id: string }) => id)];
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

  test("each deep page reads the entries behind the page before alone", async () => {
    const cache: SlotCache = new Map();
    const queries: Query[] = [];
    const watched: Pick<Database, "query"> = {
      query: (query) => {
        queries.push(query);
        return store.database.query(query);
      },
    };
    for (let number = 60; number <= 63; number++) await page("sort=title", number, cache, watched);
    for (const query of queries.slice(-3)) {
      const { root } = await measureQuery(store.database, query);
      // The start, the ids of the page and those of the same title before it, and the page.
      expect(rowsReadFrom(root, "entries")).toBeLessThanOrEqual(1 + 20 + 3 + 20);
    }
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
