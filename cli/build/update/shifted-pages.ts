/** Rewrites the default pages of a type of which entries were added, removed or moved. */
import { lastPage } from "../../../shared/body.ts";
import { type ContentType, defaultPerPage } from "../../../shared/catalog.ts";
import type { FreeAnswer } from "../answers/free-answer.ts";
import { openPages } from "../answers/pages.ts";
import type { Rewrite } from "../stage/staged-app.ts";
import { type BuiltTree, idOfItem } from "./built.ts";
import { bytesOf, foreignPage, type PlacedItem, pageAddress, readPage, type Totals } from "./built-page.ts";

/** Pages that are rewritten at once. */
const BATCH = 50;

/**
 * Reads all pages, drops the items of the entries in `touched`, which holds ids, and inserts those that are `placed`.
 * Throws ForeignTreeError when the pages in the tree are not those of the database before the changes.
 */
export function* shiftPages(
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
    body: bytesOf(body),
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
