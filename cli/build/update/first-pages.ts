/**
 * Updates the first pages of filters and sorts when some of a type's entries have changed. The page in the tree holds
 * the first of the untouched entries, and the touched ones are merged into them. The page is queried only when
 * untouched entries that it does not hold may move up into it.
 */
import type { Address } from "../../../shared/address.ts";
import { listBody } from "../../../shared/body.ts";
import { type App, type ContentType, defaultPerPage } from "../../../shared/catalog.ts";
import type { Session } from "../../../shared/database/database.ts";
import { firstsQuery } from "../../../shared/sql/tree-query.ts";
import { filterAnswers } from "../answers/filters.ts";
import { countSortFiles, firstPageItems, sortOrders } from "../answers/sorts.ts";
import type { Rewrite } from "../stage/staged-app.ts";
import { type BuiltTree, idOfItem } from "./built.ts";
import { type FirstPage, readFirstPages } from "./built-first-pages.ts";
import type { Totals } from "./built-page.ts";
import type { RewritePlan } from "./pages.ts";
import type { TouchedType } from "./touched.ts";

/** Number of first pages that one query sorts. */
const BATCH = 50;

/** `items` are the list items, by id, of the touched entries that are published. */
export function planFirstPages(
  session: Session,
  app: App,
  type: ContentType,
  built: BuiltTree,
  touched: TouchedType,
  items: ReadonlyMap<string, string>,
  totals: Totals,
): RewritePlan {
  if (touched.listed.length === 0) return { files: 0, reads: [], answers: () => [] };
  const touchedIds = new Set(touched.listed.map(({ id }) => id));
  const view = { built, touchedIds };
  const filters = [...touched.facets.values()].reduce((sum, values) => sum + values.size, 0);

  async function* answers(): AsyncGenerator<Rewrite[]> {
    const undetermined: FirstPage[] = [];
    const pages = readFirstPages(type, view, touched.facets, [...items.keys()], totals);
    for (let batch = take(pages, BATCH); batch.length > 0; batch = take(pages, BATCH)) {
      const firstIds = await findFirstIds(session, app, type, batch);
      for (const page of batch) {
        const ids = firstIds.get(page) ?? page.untouched.map(idOfItem);
        if (isDetermined(type, page, ids)) yield rewriteFirstPage(type, page, determinedItems(type, page, ids, items));
        else undetermined.push({ ...page, untouched: [] });
      }
    }
    yield* queryFirstPages(session, app, type, undetermined);
  }
  return { files: countSortFiles(type) + filters, reads: firstPageAddresses(type, touched.facets), answers };
}

function firstPageAddresses(type: ContentType, facets: TouchedType["facets"]): Address[] {
  const { slug } = type;
  const sorts = sortOrders(type).flatMap(({ spellings }) => spellings);
  const filters = [...facets].flatMap(([column, values]) =>
    [...values.keys()].map((value) => [column.name, value] as const),
  );
  return [
    ...sorts.map((sort) => ({ kind: "sort", slug, sort }) as const),
    ...filters.map(([field, value]) => ({ kind: "filter", slug, field, value }) as const),
  ];
}

function take<T>(from: Iterator<T>, most: number): T[] {
  const taken: T[] = [];
  while (taken.length < most) {
    const next = from.next();
    if (next.done) break;
    taken.push(next.value);
  }
  return taken;
}

/** The first entry ids of each page whose list contains a touched entry. */
async function findFirstIds(
  session: Session,
  app: App,
  type: ContentType,
  pages: readonly FirstPage[],
): Promise<ReadonlyMap<FirstPage, readonly string[]>> {
  const firstIds = new Map<FirstPage, readonly string[]>();
  const contested = pages.filter(({ present }) => present.length > 0);
  const contests = contested.map(({ sort, untouched, present }) => ({
    sort,
    candidates: [...untouched.map(idOfItem), ...present],
  }));
  if (contests.length === 0) return firstIds;
  const [firsts] = await session.query(firstsQuery(app.key, type, contests, defaultPerPage(type)));
  for (const [index, page] of contested.entries()) firstIds.set(page, (firsts?.[index] ?? "").split(","));
  return firstIds;
}

/**
 * Whether the new page is known without a query. Entries that the tree's page does not hold come after the last
 * untouched one, so the page must be full up to that one, or the list must have no other entries.
 */
function isDetermined(type: ContentType, { untouched, isComplete, total }: FirstPage, ids: readonly string[]): boolean {
  if (isComplete || total === 0) return true;
  const last = untouched.at(-1);
  if (last === undefined) return false;
  const place = ids.indexOf(idOfItem(last));
  return (place < 0 ? ids.length : place + 1) >= Math.min(defaultPerPage(type), total);
}

function determinedItems(
  type: ContentType,
  { untouched }: FirstPage,
  ids: readonly string[],
  items: ReadonlyMap<string, string>,
): string[] {
  const known = new Map(untouched.map((item) => [idOfItem(item), item]));
  return ids.slice(0, defaultPerPage(type)).map((id) => items.get(id) ?? (known.get(id) as string));
}

/** Writes a first page, or deletes the file of a filter value that no entry has any more. */
function rewriteFirstPage(
  type: ContentType,
  { addresses, column, total }: FirstPage,
  items: readonly string[],
): Rewrite[] {
  const gone = column !== null && total === 0;
  const body = gone ? null : listBody(items, { page: 1n, perPage: defaultPerPage(type), total });
  return addresses.map((address) => ({ address, body }));
}

/** Queries these pages from the database. */
async function* queryFirstPages(
  session: Session,
  app: App,
  type: ContentType,
  pages: readonly FirstPage[],
): AsyncGenerator<Rewrite[]> {
  for (const page of pages) {
    if (page.column === null) yield rewriteFirstPage(type, page, await firstPageItems(session, app, type, page.sort));
  }
  for (const column of new Set(pages.map((page) => page.column))) {
    if (column === null) continue;
    const addresses = pages.filter((page) => page.column === column).flatMap((page) => page.addresses);
    const values = addresses.flatMap((address) => (address.kind === "filter" ? [address.value] : []));
    yield* filterAnswers(session, app, type, column, values);
  }
}
