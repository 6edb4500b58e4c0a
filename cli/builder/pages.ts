/**
 * Updates the default pages of a type when some of its entries have changed. The pages in the tree hold the items of
 * all untouched entries in order, so only the touched entries and their places are queried.
 */
import type { Address, FreeAnswer } from "../../shared/api/address.ts";
import { lastPage, listBody } from "../../shared/api/answer.ts";
import { type App, type ContentType, defaultPerPage } from "../../shared/api/catalog.ts";
import { defaultSort, shownOfList } from "../../shared/api/columns.ts";
import { type EntryRow, readEntryRow, renderEntry } from "../../shared/api/entry.ts";
import type { Session } from "../../shared/database/database.ts";
import { placesQuery } from "../../shared/sql/tree.ts";
import { openPages } from "./answers.ts";
import {
  type BuiltTree,
  encodeText,
  foreignPage,
  idOfItem,
  type PlacedItem,
  pageAddress,
  readPage,
  type Totals,
} from "./built.ts";
import type { Rewrite } from "./stage.ts";
import type { Touched } from "./touched.ts";

export type RewritePlan = {
  /** Number of files that are processed. */
  readonly files: number;
  /** The files of the tree that are read or replaced. */
  readonly reads: readonly Address[];
  readonly answers: () => AsyncIterable<Rewrite[]> | Iterable<Rewrite[]>;
};

type Place = { readonly id: string; readonly index: number; readonly item: string };

/** Queries the indexes, from 0 in the order of the default pages, and the items of the touched published entries. */
export async function findPlaces(
  session: Session,
  app: App,
  type: ContentType,
  listed: readonly Touched[],
): Promise<Place[]> {
  const shown = shownOfList(type);
  const ids = listed.filter(({ change }) => change !== "removed").map(({ id }) => id);
  if (ids.length === 0) return [];
  const rows = await session.query(placesQuery(app.key, type, ids));
  return rows.map((row) => {
    const entry = readEntryRow(row, 1) as EntryRow;
    return { id: entry.id, index: Number(row[0]) - 1, item: renderEntry(app, shown, entry) };
  });
}

/** `places` are those of the touched entries that are published, in the order of the pages. */
export function planPages(
  type: ContentType,
  built: BuiltTree,
  listed: readonly Touched[],
  places: readonly Place[],
  totals: Totals,
): RewritePlan {
  if (listed.length === 0) return { files: 0, reads: [], answers: () => [] };
  const placed = places.map(({ index, item }) => ({ index, item: Buffer.from(item).toString("latin1") }));
  const { column } = defaultSort(type);
  const moved = listed.some(
    ({ change, columns }) => change !== "edited" || columns.has(column.name) || columns.has("published_at"),
  );
  if (!moved) {
    const pages = groupByPage(placed, defaultPerPage(type));
    const reads = [...pages.keys()].map((number) => pageAddress(type, number));
    return { files: pages.size, reads, answers: () => editPages(type, built, pages, totals.total) };
  }
  const perPage = defaultPerPage(type);
  const files = Math.max(lastPage(totals.total, perPage), lastPage(totals.before, perPage));
  const reads = Array.from({ length: lastPage(totals.before, perPage) }, (_, index) => pageAddress(type, index + 1));
  const touched = new Set(listed.map(({ id }) => id));
  return { files, reads, answers: () => shiftPages(type, built, touched, placed, totals) };
}

function groupByPage(placed: readonly PlacedItem[], perPage: number): Map<number, PlacedItem[]> {
  const pages = new Map<number, PlacedItem[]>();
  for (const one of placed) {
    const page = Math.floor(one.index / perPage) + 1;
    pages.set(page, [...(pages.get(page) ?? []), one]);
  }
  return pages;
}

/** For edits that move no entry: replaces items in their places. */
function* editPages(
  type: ContentType,
  built: BuiltTree,
  pages: ReadonlyMap<number, readonly PlacedItem[]>,
  total: number,
): Generator<Rewrite[]> {
  const perPage = defaultPerPage(type);
  for (const [number, placed] of pages) {
    const items = [...readPage(type, built, number, total).items];
    for (const { index, item } of placed) {
      const place = index % perPage;
      if (idOfItem(items[place] ?? "") !== idOfItem(item)) throw foreignPage(type, number);
      items[place] = item;
    }
    const body = listBody(items, { page: BigInt(number), perPage, total });
    yield [{ address: pageAddress(type, number), body: encodeText(body) }];
  }
}

// Rewrites the default pages of a type of which entries were added, removed or moved.

/** Pages that are rewritten at once. */
const BATCH = 50;

/**
 * Reads all pages, drops the items of the entries in `touched`, which holds ids, and inserts those that are `placed`.
 * Throws ForeignTreeError when the pages in the tree are not those of the database before the changes.
 */
function* shiftPages(
  type: ContentType,
  built: BuiltTree,
  touched: ReadonlySet<string>,
  placed: readonly PlacedItem[],
  { before, total }: Totals,
): Generator<Rewrite[]> {
  const pages = openPages(type, total);
  const sizes: number[] = [];
  // Every page contains the total: if that has changed, so has every page.
  const rewrite = ({ address, body }: FreeAnswer): Rewrite => ({
    address,
    body: encodeText(body),
    replacedSize: total === before || address.kind !== "page" ? undefined : sizes[Number(address.page) - 1],
  });
  let count = 0;
  let batch: FreeAnswer[] = [];
  for (const item of shiftedItems(readItems(type, built, before, sizes), touched, placed)) {
    count += 1;
    batch.push(...pages.add(item));
    if (batch.length < BATCH) continue;
    yield batch.map(rewrite);
    batch = [];
  }
  if (count !== total) throw foreignPage(type, 1);
  yield [...batch, ...pages.rest()].map(rewrite);
  yield* removedPages(type, { before, total });
}

/** The items on all pages of the tree. Adds the size of each page to `sizes` before its first item. */
function* readItems(type: ContentType, built: BuiltTree, before: number, sizes: number[]): Generator<string> {
  for (let number = 1; number <= lastPage(before, defaultPerPage(type)); number++) {
    const { items, size } = readPage(type, built, number, before);
    sizes.push(size);
    yield* items;
  }
}

/** The items of untouched entries, with each placed one where it belongs among them. */
function* shiftedItems(
  items: Iterable<string>,
  touched: ReadonlySet<string>,
  placed: readonly PlacedItem[],
): Generator<string> {
  const coming = [...placed].reverse();
  let index = 0;
  function* due(): Generator<string> {
    for (; coming.at(-1)?.index === index; index++) yield (coming.pop() as PlacedItem).item;
  }
  for (const item of items) {
    yield* due();
    if (touched.has(idOfItem(item))) continue;
    yield item;
    index++;
  }
  yield* due();
}

function* removedPages(type: ContentType, { before, total }: Totals): Generator<Rewrite[]> {
  const perPage = defaultPerPage(type);
  for (let number = lastPage(total, perPage) + 1; number <= lastPage(before, perPage); number++)
    yield [{ address: pageAddress(type, number), body: null }];
}
