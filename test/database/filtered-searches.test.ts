/** Searches with filters and sorts: the same entries in the same order, whichever of these is looked at first. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { App } from "../../shared/api/catalog.ts";
import type { SlotCache } from "../../shared/sql/columns.ts";
import { measuredPage, pageOf } from "../support/live-page.ts";
import { rowsReadFrom } from "../support/plan-rows.ts";
import { ENGINES, openStore, type Store } from "../support/site.ts";
import { addGoods, openShop } from "../support/stock.ts";

const SIZE = 6_000;

/** How often a good has each word, and how often it has it as a part of a longer one. The later goods are newer. */
const WORDS: Readonly<Record<string, (number: number) => readonly [whole: number, part: number]>> = {
  // So many goods have it that those of a filter are found first.
  every: () => [1, 0],
  // Of so many, those of the filter are picked before their texts are read.
  tenth: (number) => (number % 10 === 0 ? [number % 40 === 0 ? 0 : 1, number % 20 === 0 ? 2 : 0] : [0, 0]),
  // So few are looked at one by one.
  rare: (number) => (number % 100 === 0 ? [1 + (number % 3), 0] : [0, 0]),
  // A part of words of which the goods have too many to look up each.
  mix: (number) => [0, number % 7 === 0 ? 1 : 0],
};

function titleOf(number: number): string {
  return Object.entries(WORDS)
    .flatMap(([word, often]) => {
      const [whole, part] = often(number);
      return [...Array(whole).fill(word), ...Array(part).fill(`x${word}${word === "mix" ? number : ""}`)];
    })
    .join(" ");
}

type Good = { readonly number: number; readonly color: string; readonly price: number | null };
const GOODS: readonly Good[] = Array.from({ length: SIZE }, (_, number) => ({
  number,
  color: `c${number % 3}`,
  price: number % 9 === 4 ? null : number % 50,
}));

/** Those without a price come last. */
const priceOf = ({ price }: Good) => price ?? 1_000;

/** The numbers of the goods that have all words and pass, in the order of relevance, or by price. */
function found(words: readonly string[], passes: (good: Good) => boolean, byPrice: boolean): number[] {
  const countsOf = ({ number }: Good) => words.map((word) => WORDS[word]?.(number) ?? [0, 0]);
  const sum = (counts: readonly number[]) => counts.reduce((all, count) => all + count, 0);
  const isComplete = (good: Good) => countsOf(good).every(([whole]) => whole > 0);
  const occurrences = (good: Good) =>
    sum(countsOf(good).map(([whole, part]) => (isComplete(good) ? whole : whole + part)));
  const has = (good: Good) => countsOf(good).every(([whole, part]) => whole + part > 0);
  const relevance = (one: Good, other: Good) =>
    Number(isComplete(other)) - Number(isComplete(one)) || occurrences(other) - occurrences(one);
  return GOODS.filter((good) => has(good) && passes(good))
    .sort(
      (one, other) => (byPrice ? priceOf(one) - priceOf(other) : relevance(one, other)) || other.number - one.number,
    )
    .map(({ number }) => number);
}

const FILTERS: Readonly<Record<string, (good: Good) => boolean>> = {
  "filter[color]=c1": ({ color }) => color === "c1",
  "filter[color][in]=c1,c2&filter[price][lt]=5": ({ color, price }) => color !== "c0" && price !== null && price < 5,
  "filter[price]=7": ({ price }) => price === 7,
  "filter[color][neq]=c1": ({ color }) => color !== "c1",
  "filter[color]=none": () => false,
  "": () => true,
};
const SEARCHES = [["every"], ["tenth"], ["rare"], ["mix"], ["every", "tenth"], ["rare", "tenth", "every"], ["nothing"]];

describe.each(ENGINES)("on %s", (engine) => {
  let store: Store;
  let app: App;
  const cache: SlotCache = new Map();

  beforeAll(async () => {
    store = await openStore(engine);
    const goods = {
      fields: [
        { name: "title", type: "text", searchable: true },
        { name: "color", type: "select" },
        { name: "price", type: "number" },
      ],
      filterable_fields: ["color", "price"],
      sortable_fields: ["price"],
    } as const;
    // The other type has the same entries under the same ids.
    app = await openShop(store, [goods, { ...goods, slug: "others" }]);
    const added = GOODS.map(({ number, ...data }) => ({
      published: Date.UTC(2026, 0, 1) + number * 60_000,
      data: { ...data, title: titleOf(number) },
    }));
    await addGoods(store.database, added);
    await store.database.execute("VACUUM ANALYZE");
  });
  afterAll(() => store.close());

  /** The total, and the numbers of the goods on the page. */
  async function page(search: string): Promise<[number, ...number[]]> {
    const { total, items } = await pageOf(store.database, app, `goods/search?${search}`, cache);
    return [total, ...items.map(({ published_at }) => (Date.parse(published_at) - Date.UTC(2026, 0, 1)) / 60_000)];
  }

  test.each(SEARCHES.flatMap((words) => Object.keys(FILTERS).map((filter) => [words.join("+"), filter] as const)))(
    "q=%s with %s finds the entries that a reader finds, in their order",
    async (q, filter) => {
      for (const sort of ["", "&sort=price"]) {
        const all = found(q.split("+"), FILTERS[filter] as (good: Good) => boolean, sort !== "");
        const last = Math.max(1, Math.ceil(all.length / 20));
        for (const number of new Set([1, last]))
          expect(await page(`q=${q}&${filter}${sort}&page=${number}`), `${sort}, page ${number}`).toEqual([
            all.length,
            ...all.slice(20 * (number - 1), 20 * number),
          ]);
      }
    },
  );

  /** How many texts the database reads, and how many entries, each time that it does. */
  async function resolveRequest(search: string): Promise<{ texts: number; entries: number }> {
    const root = await measuredPage(store.database, app, `goods/search?${search}`);
    return { texts: rowsReadFrom(root, "entry_words"), entries: rowsReadFrom(root, "entries") };
  }

  test("of the entries with the words and those that pass, the fewer decide how much is read", async () => {
    // 600 have the word and are found by it twice. The 120 that pass are too, and none of the 600 is looked at by itself.
    const both = await resolveRequest("q=tenth&filter[price]=0");
    expect(both.texts).toBeLessThanOrEqual(2 * 600);
    expect(both.entries).toBeLessThanOrEqual(2 * 120 + 20);
    // The first 5,001 with the word are found by it, and then the 120 that pass are read.
    const filtersFirst = await resolveRequest("q=every&filter[price]=7");
    expect(filtersFirst.texts).toBeLessThanOrEqual(5_001 + 120);
    // Those of the 60 with the word are looked at one by one.
    const wordsFirst = await resolveRequest("q=rare&filter[color]=c1");
    expect(wordsFirst.texts).toBeLessThanOrEqual(2 * 60);
    expect(wordsFirst.entries).toBeLessThanOrEqual(60 + 20);
  });

  test("of many entries with the words, those that come first in the order are read and no others", async () => {
    for (const page of [1, 2])
      expect((await resolveRequest(`q=tenth&sort=price&page=${page}`)).entries).toBeLessThanOrEqual(
        10 * 40 + 10 * 12 + 20,
      );
  });
});
