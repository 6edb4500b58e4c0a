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
import type { Rewrite } from "../stage/staged-app.ts";
import { type BuiltTree, idOfItem } from "./built.ts";
import { bytesOf, foreignPage, type PlacedItem, pageAddress, readPage, type Totals } from "./built-page.ts";
import { shiftPages } from "./shifted-pages.ts";
import type { Touched } from "./touched.ts";

export type RewritePlan = {
  /** Number of files that are processed. */
  readonly files: number;
  /** The files of the tree that are read or replaced. */
  readonly reads: readonly Address[];
  readonly answers: () => AsyncIterable<Rewrite[]> | Iterable<Rewrite[]>;
};

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
    yield [{ address: pageAddress(type, number), body: bytesOf(body) }];
  }
}
