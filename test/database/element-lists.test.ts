/** Lists of the entries with an element of a `multiple` field: right on every page, wherever in the order they stand. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { measureQuery } from "../../cli/explain/measure.ts";
import { readApp } from "../../shared/apps.ts";
import type { App } from "../../shared/catalog.ts";
import { readEntryLines } from "../../shared/entry-row.ts";
import { type ListPlan, planRequest } from "../../shared/plan.ts";
import { sql } from "../../shared/query.ts";
import { type ApiRequest, readRequest } from "../../shared/request.ts";
import { listQuery } from "../../shared/sql/list-query.ts";
import { readSlots, type Slots, slotsQuery } from "../../shared/sql/slots.ts";
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
        { name: "tags", type: "select", label: "Tags", required: false, searchable: false, multiple: true },
        { name: "price", type: "number", label: "Price", required: false, searchable: false },
      ],
      filterable_fields: ["tags"],
      sortable_fields: ["price"],
    },
  ],
  entries: { goods: [] },
};

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
  let slots: Slots;

  beforeAll(async () => {
    store = await openStore(engine);
    await loadBundles(store, [SHOP]);
    const entries = Array.from({ length: SIZE }, (_, number) => ({
      published: new Date(Date.UTC(2026, 0, 1) + number * 60_000),
      data: {
        tags: Object.keys(TAGS).filter((tag) => TAGS[tag]?.(number)),
        ...(number < SOLD ? { price: number } : {}),
      },
    }));
    await store.database.query(
      sql(
        `INSERT INTO precast.entries (content_type_id, id, status, published_at, data)
         SELECT type.id, gen_random_uuid(), 'published', (entry ->> 'published')::timestamptz, entry -> 'data'
         FROM precast.content_types AS type, jsonb_array_elements($1::jsonb) AS entry`,
        [JSON.stringify(entries)],
      ),
    );
    await store.database.execute("VACUUM ANALYZE");
    app = (await readApp(store.database, "shop", { mediaBaseUrl: "" })) as App;
    slots = readSlots((await store.database.query(slotsQuery("shop", "goods")))[0]) as Slots;
  });
  afterAll(() => store.close());

  function queryOf(parameters: string) {
    const target = `/api/v1/goods?${parameters}`;
    const request = readRequest({ method: "GET", target, appKey: "shop" }) as ApiRequest;
    return listQuery("shop", planRequest(request, app.types[0]) as ListPlan, slots);
  }

  /** The numbers of the entries on a page. */
  async function page(parameters: string): Promise<number[]> {
    const [[, , text = null] = []] = await store.database.query(queryOf(parameters));
    return readEntryLines(text).map(({ published_at }) => (Date.parse(published_at) - Date.UTC(2026, 0, 1)) / 60_000);
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
  async function readFor(parameters: string): Promise<number> {
    return rowsReadFrom((await measureQuery(store.database, queryOf(parameters))).root, "entries");
  }

  test("a page is found without passing all entries, also when those with the element stand at its far end", async () => {
    const many = 400;
    // The scan ends after two entries for each match, then all matches are found and sorted, and the page is read.
    for (const parameters of ["filter[tags]=oldest", "filter[tags]=newest&sort=price"])
      expect(await readFor(parameters), parameters).toBeLessThanOrEqual(3 * many + 20);
    expect(await readFor("filter[tags]=spread")).toBeLessThanOrEqual(20 * 15 + 20);
    expect(await readFor("filter[tags]=newest")).toBeLessThanOrEqual(20 + 20);
  });
});
