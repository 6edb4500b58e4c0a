/**
 * Plans which files of a type to write when some of its entries have changed. An edit that neither moves an entry nor
 * changes the total affects the entry, its default page, the filters of its values and the sorts whose first page holds
 * it. A change of the total affects every default page and every sort.
 */
import type { Address, FreeAnswer } from "../../shared/api/address.ts";
import { listBody } from "../../shared/api/answer.ts";
import { type App, type Column, type ContentType, defaultPerPage } from "../../shared/api/catalog.ts";
import { defaultSort, type Sort } from "../../shared/api/columns.ts";
import type { Session } from "../../shared/database/database.ts";
import { countQuery, firstsQuery } from "../../shared/sql/tree.ts";
import { entryAnswer } from "./answers.ts";
import { type BuiltTree, ForeignTreeError, idOfItem, listIn, type Totals } from "./built.ts";
import { countSortFiles, filterAnswers, firstPageItems, sortOrders } from "./lists.ts";
import { findPlaces, planPages, type RewritePlan } from "./pages.ts";
import { measureFilters, type Part } from "./size.ts";
import type { Rewrite } from "./stage.ts";
import { findTouched, readEntries, type Touched, type TouchedType } from "./touched.ts";

type UpdatePlan = {
  readonly total: number;
  /** Number of files that are processed. */
  readonly files: number;
  readonly parts: readonly Part[];
  readonly rewrites: () => AsyncGenerator<Rewrite[]>;
};

const BATCH = 200;

/** `ids` are the entries that may differ; `before` is the number of entries of the type in the tree. */
export async function planUpdate(
  session: Session,
  app: App,
  type: ContentType,
  built: BuiltTree,
  ids: readonly string[],
  before: number,
): Promise<UpdatePlan> {
  const touched = await findTouched(session, app, type, built, ids);
  const needsCount = touched.hasAbsent || touched.listed.some(({ change }) => change !== "edited");
  const total = needsCount ? Number((await session.query(countQuery(app.key, type.slug)))[0]?.[0]) : before;
  if (total !== before + countGrowth(touched.listed)) throw new ForeignTreeError(`${type.slug}/entry`);
  const places = await findPlaces(session, app, type, touched.listed);
  const items = new Map(places.map(({ id, item }) => [id, item]));
  const pages = planPages(type, built, touched.listed, places, { before, total });
  const firstPages = planFirstPages(session, app, type, built, touched, items, { before, total });
  await built.fetchFiles([...pages.reads, ...firstPages.reads]);

  async function* rewrites(): AsyncGenerator<Rewrite[]> {
    yield* entryAnswers(session, app, type, touched.written);
    yield* pages.answers();
    yield* firstPages.answers();
    yield touched.gone.map((id) => ({ address: { kind: "entry", slug: type.slug, id }, body: null }));
  }
  const files = touched.written.length + touched.gone.length + pages.files + firstPages.files;
  return { total, files, parts: measureFilters(app, type, touched.facets, items), rewrites };
}

/** By how many entries the type has grown, found by comparison with the entry files of the tree. */
function countGrowth(listed: readonly Touched[]): number {
  const count = (wanted: Touched["change"]) => listed.filter(({ change }) => change === wanted).length;
  return count("added") - count("removed");
}

async function* entryAnswers(
  session: Session,
  app: App,
  type: ContentType,
  ids: readonly string[],
): AsyncGenerator<FreeAnswer[]> {
  for (let at = 0; at < ids.length; at += BATCH) {
    const entries = await readEntries(session, app, type, ids.slice(at, at + BATCH));
    yield [...entries.values()].map((entry) => entryAnswer(app, type, entry));
  }
}

// Updates the first pages of filters and sorts when some of a type's entries have changed. The page in the tree holds
// the first of the untouched entries, and the touched ones are merged into them. The page is queried only when
// untouched entries that it does not hold may move up into it.

/** Number of first pages that one query sorts. */
const WRITE_BATCH = 50;

/** `items` are the list items, by id, of the touched entries that are published. */
function planFirstPages(
  session: Session,
  app: App,
  type: ContentType,
  built: BuiltTree,
  touched: TouchedType,
  items: ReadonlyMap<string, string>,
  totals: Totals,
): RewritePlan {
  if (touched.listed.length === 0) return { files: 0, reads: [], answers: () => [] };
  const filters = [...touched.facets.values()].reduce((sum, values) => sum + values.size, 0);

  async function* answers(): AsyncGenerator<Rewrite[]> {
    const undetermined: FirstPage[] = [];
    const pages = readFirstPages(type, built, touched, [...items.keys()], totals);
    for (let batch = take(pages, WRITE_BATCH); batch.length > 0; batch = take(pages, WRITE_BATCH)) {
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

// Reads the first pages of filters and sorts that the tree holds, without the entries that have been touched since.

/** A first page: of the list of a filter value in `column`, or, if that is null, of all entries in a sort order. */
type FirstPage = {
  readonly column: Column | null;
  readonly sort: Sort;
  /** One for each spelling of a sort. */
  readonly addresses: readonly Address[];
  readonly total: number;
  /** Ids of the touched entries that the list now contains. */
  readonly present: readonly string[];
  /** `untouched` are the other items of the tree's page; `isComplete` is whether that page holds the whole list. */
  readonly untouched: readonly string[];
  readonly isComplete: boolean;
};

/** `present` are the ids of the touched entries that are published. Reads the pages one by one: many may be touched. */
function* readFirstPages(
  type: ContentType,
  built: BuiltTree,
  { listed, facets }: TouchedType,
  present: readonly string[],
  totals: Totals,
): Generator<FirstPage> {
  const touchedIds = new Set(listed.map(({ id }) => id));
  const order = defaultSort(type);
  for (const [column, values] of facets) {
    for (const [value, { before, now }] of values) {
      const address = { kind: "filter", slug: type.slug, field: column.name, value } as const;
      const file = readFirstPage(built, touchedIds, address);
      if (file.total < before) throw new ForeignTreeError(`${type.slug}/filter/${column.name}`);
      const total = file.total - before + now.length;
      yield { ...file, column, sort: order, addresses: [address], total, present: now };
    }
  }
  for (const { sort, spellings } of sortOrders(type)) {
    const addresses = spellings.map((spelling) => ({ kind: "sort", slug: type.slug, sort: spelling }) as const);
    const file = readFirstPage(built, touchedIds, addresses[0] as Address);
    if (file.total !== totals.before) throw new ForeignTreeError(`${type.slug}/sort`);
    yield { ...file, column: null, sort, addresses, total: totals.total, present };
  }
}

function readFirstPage(built: BuiltTree, touchedIds: ReadonlySet<string>, address: Address) {
  const file = built.read(address);
  const { items, total } = file === null ? { items: [], total: 0 } : listIn(file, address);
  // A value without a file is new, or somebody has removed the file.
  const isComplete = file !== null && items.length === total;
  return { total, untouched: items.filter((item) => !touchedIds.has(idOfItem(item))), isComplete };
}
