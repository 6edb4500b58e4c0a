/**
 * Updates the default pages of a type when some of its entries have changed. The pages in the tree hold the items of
 * all untouched entries in order, so only the touched entries and their places are queried.
 */
import type { Address } from "../../../shared/address.ts";
import { lastPage, listBody } from "../../../shared/body.ts";
import { type App, type ContentType, defaultPerPage } from "../../../shared/catalog.ts";
import type { Session } from "../../../shared/database/database.ts";
import { renderEntry } from "../../../shared/entry.ts";
import { type EntryRow, readEntryRow } from "../../../shared/entry-row.ts";
import { shownOfList } from "../../../shared/shown.ts";
import { defaultSort } from "../../../shared/sort.ts";
import { placesQuery } from "../../../shared/sql/tree-query.ts";
import type { FreeAnswer } from "../answers/free-answer.ts";
import { openPages } from "../answers/pages.ts";
import type { Rewrite } from "../stage/staged-app.ts";
import { type BuiltTree, ForeignTreeError, idOfItem, listIn } from "./built.ts";
import type { Touched } from "./touched.ts";

/** Number of entries of the type in the tree (`before`), and in the database. */
export type Totals = { readonly before: number; readonly total: number };

export type RewritePlan = {
  /** Number of files that are processed. */
  readonly files: number;
  /** The files of the tree that are read or replaced. */
  readonly reads: readonly Address[];
  readonly answers: () => AsyncIterable<Rewrite[]> | Iterable<Rewrite[]>;
};

/** A touched entry that is published: its index in the order of the pages, from 0, and its item as a latin1 string. */
type PlacedItem = { readonly index: number; readonly item: string };

const BATCH = 50;

export type Place = { readonly id: string; readonly index: number; readonly item: string };

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
  return { files, reads, answers: () => shiftPages(type, built, listed, placed, totals) };
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
      if (idOfItem(items[place] ?? "") !== idOfItem(item)) throw foreign(type, number);
      items[place] = item;
    }
    const page = BigInt(number);
    const address = { kind: "page", slug: type.slug, page } as const;
    yield [{ address, body: bytesOf(listBody(items, { page, perPage, total })) }];
  }
}

/**
 * For entries that are added, removed or moved: reads all pages, drops the touched entries and inserts those that are
 * published at their new places.
 */
function* shiftPages(
  type: ContentType,
  built: BuiltTree,
  listed: readonly Touched[],
  placed: readonly PlacedItem[],
  { before, total }: Totals,
): Generator<Rewrite[]> {
  const perPage = defaultPerPage(type);
  const touched = new Set(listed.map(({ id }) => id));
  const pages = openPages(type, total);
  const coming = [...placed].reverse();
  const sizes: number[] = [];
  let index = 0;
  let batch: FreeAnswer[] = [];
  const add = (item: string) => {
    index += 1;
    batch.push(...pages.add(item));
  };
  const addComing = () => {
    while (coming.at(-1)?.index === index) add(coming.pop()?.item as string);
  };
  // Every page contains the total: if that has changed, so has every page.
  const rewrite = ({ address, body }: FreeAnswer): Rewrite => ({
    address,
    body: bytesOf(body),
    replacedSize: total === before || address.kind !== "page" ? undefined : sizes[Number(address.page) - 1],
  });
  for (let number = 1; number <= lastPage(before, perPage); number++) {
    const { items, size } = readPage(type, built, number, before);
    sizes.push(size);
    for (const item of items) {
      addComing();
      if (!touched.has(idOfItem(item))) add(item);
    }
    if (batch.length >= BATCH) {
      yield batch.map(rewrite);
      batch = [];
    }
  }
  addComing();
  if (index !== total) throw foreign(type, 1);
  yield [...batch, ...pages.rest()].map(rewrite);
  for (let number = lastPage(total, perPage) + 1; number <= lastPage(before, perPage); number++) {
    yield [{ address: { kind: "page", slug: type.slug, page: BigInt(number) }, body: null }];
  }
}

function pageAddress({ slug }: ContentType, number: number): Address {
  return { kind: "page", slug, page: BigInt(number) };
}

/** `size` is in bytes. Throws ForeignTreeError when the page is missing or its total is not `before`. */
function readPage(type: ContentType, built: BuiltTree, number: number, before: number) {
  const address = pageAddress(type, number);
  const file = built.readBinary(address);
  if (file === null) throw foreign(type, number);
  const { items, total } = listIn(file, address);
  if (total !== before) throw foreign(type, number);
  return { items, size: file.length };
}

function bytesOf(text: string): Uint8Array {
  return Buffer.from(text, "latin1");
}

function foreign(type: ContentType, number: number): ForeignTreeError {
  return new ForeignTreeError(`${type.slug}/page/${number}.json`);
}
