/**
 * Updates the first pages of filters and sorts (heads) when some of a type's entries have changed. The page in the tree
 * holds the first of the untouched entries, and the touched ones are merged into them. The page is queried only when
 * untouched entries that it does not hold may move up into it.
 */
import type { Address } from "../../../shared/address.ts";
import { listBody } from "../../../shared/body.ts";
import { type App, type Column, type ContentType, defaultPerPage } from "../../../shared/catalog.ts";
import type { Session } from "../../../shared/database/database.ts";
import { defaultSort, type Sort } from "../../../shared/sort.ts";
import { firstsQuery } from "../../../shared/sql/tree-query.ts";
import { facetAnswers } from "../answers/filters.ts";
import { countSorts, headItems, sortHeads } from "../answers/sorts.ts";
import type { Rewrite } from "../stage/staged-app.ts";
import { type BuiltTree, ForeignTreeError, idOfItem, listIn } from "./built.ts";
import type { Rewrites, Totals } from "./pages.ts";
import type { TouchedType } from "./touched.ts";

/** A first page: of the list of a filter value in `column`, or, if that is null, of all entries in a sort order. */
type Head = {
  readonly column: Column | null;
  readonly sort: Sort;
  /** One for each spelling of a sort. */
  readonly addresses: readonly Address[];
  readonly total: number;
  /** Ids of the touched entries that the list now contains. */
  readonly present: readonly string[];
  /** `staying` are the untouched items of the tree's page; `whole` is whether that page holds the whole list. */
  readonly staying: readonly string[];
  readonly whole: boolean;
};

/** Number of heads that one query sorts. */
const BATCH = 50;

/** `items` are the list items, by id, of the touched entries that are published. */
export function planHeads(
  session: Session,
  app: App,
  type: ContentType,
  built: BuiltTree,
  touched: TouchedType,
  items: ReadonlyMap<string, string>,
  totals: Totals,
): Rewrites {
  if (touched.listed.length === 0) return { files: 0, reads: [], answers: () => [] };
  const away = new Set(touched.listed.map(({ id }) => id));
  const seen = { built, away };
  const filters = [...touched.facets.values()].reduce((sum, values) => sum + values.size, 0);

  async function* answers(): AsyncGenerator<Rewrite[]> {
    const open: Head[] = [];
    const heads = readHeads(type, seen, touched.facets, [...items.keys()], totals);
    for (let batch = take(heads, BATCH); batch.length > 0; batch = take(heads, BATCH)) {
      const orders = await findOrders(session, app, type, batch);
      for (const head of batch) {
        const ids = orders.get(head) ?? head.staying.map(idOfItem);
        if (isSettled(type, head, ids)) yield rewriteHead(type, head, settledItems(type, head, ids, items));
        else open.push({ ...head, staying: [] });
      }
    }
    yield* askedHeads(session, app, type, open);
  }
  return { files: countSorts(type) + filters, reads: headAddresses(type, touched.facets), answers };
}

function headAddresses(type: ContentType, facets: TouchedType["facets"]): Address[] {
  const { slug } = type;
  const sorts = sortHeads(type).flatMap(({ spellings }) => spellings);
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

type Seen = { readonly built: BuiltTree; readonly away: ReadonlySet<string> };

/** Reads the heads one by one, because many values may be touched. */
function* readHeads(
  type: ContentType,
  seen: Seen,
  facets: TouchedType["facets"],
  present: readonly string[],
  totals: Totals,
): Generator<Head> {
  yield* facetHeads(type, seen, facets);
  yield* orderHeads(type, seen, present, totals);
}

function* facetHeads(type: ContentType, seen: Seen, facets: TouchedType["facets"]): Generator<Head> {
  const sort = defaultSort(type);
  for (const [column, values] of facets) {
    for (const [value, { before, now }] of values) {
      const address = { kind: "filter", slug: type.slug, field: column.name, value } as const;
      const file = readHead(seen, address);
      if (file.total < before) throw new ForeignTreeError(`${type.slug}/filter/${column.name}`);
      const total = file.total - before + now.length;
      yield { ...file, column, sort, addresses: [address], total, present: now };
    }
  }
}

function* orderHeads(type: ContentType, seen: Seen, present: readonly string[], totals: Totals): Generator<Head> {
  for (const { sort, spellings } of sortHeads(type)) {
    const addresses = spellings.map((spelling) => ({ kind: "sort", slug: type.slug, sort: spelling }) as const);
    const file = readHead(seen, addresses[0] as Address);
    if (file.total !== totals.before) throw new ForeignTreeError(`${type.slug}/sort`);
    yield { ...file, column: null, sort, addresses, total: totals.total, present };
  }
}

function readHead({ built, away }: Seen, address: Address) {
  const file = built.read(address);
  const { items, total } = file === null ? { items: [], total: 0 } : listIn(file, address);
  // A value without a file is new, or somebody has removed the file.
  const whole = file !== null && items.length === total;
  return { total, staying: items.filter((item) => !away.has(idOfItem(item))), whole };
}

/** The first entry ids of each head whose list contains a touched entry. */
async function findOrders(
  session: Session,
  app: App,
  type: ContentType,
  heads: readonly Head[],
): Promise<ReadonlyMap<Head, readonly string[]>> {
  const orders = new Map<Head, readonly string[]>();
  const contested = heads.filter(({ present }) => present.length > 0);
  const contests = contested.map(({ sort, staying, present }) => ({
    sort,
    candidates: [...staying.map(idOfItem), ...present],
  }));
  if (contests.length === 0) return orders;
  const [firsts] = await session.query(firstsQuery(app.key, type, contests, defaultPerPage(type)));
  for (const [index, head] of contested.entries()) orders.set(head, (firsts?.[index] ?? "").split(","));
  return orders;
}

/**
 * Whether the new page is known without a query. Entries that the tree's page does not hold come after the last staying
 * one, so the page must be full up to that one, or the list must have no other entries.
 */
function isSettled(type: ContentType, { staying, whole, total }: Head, ids: readonly string[]): boolean {
  if (whole || total === 0) return true;
  const last = staying.at(-1);
  if (last === undefined) return false;
  const place = ids.indexOf(idOfItem(last));
  return (place < 0 ? ids.length : place + 1) >= Math.min(defaultPerPage(type), total);
}

function settledItems(
  type: ContentType,
  { staying }: Head,
  ids: readonly string[],
  items: ReadonlyMap<string, string>,
): string[] {
  const known = new Map(staying.map((item) => [idOfItem(item), item]));
  return ids.slice(0, defaultPerPage(type)).map((id) => items.get(id) ?? (known.get(id) as string));
}

/** Writes the page of a head, or deletes the file of a filter value that no entry has any more. */
function rewriteHead(type: ContentType, { addresses, column, total }: Head, items: readonly string[]): Rewrite[] {
  const gone = column !== null && total === 0;
  const body = gone ? null : listBody(items, { page: 1n, perPage: defaultPerPage(type), total });
  return addresses.map((address) => ({ address, body }));
}

/** Queries the pages of these heads from the database. */
async function* askedHeads(
  session: Session,
  app: App,
  type: ContentType,
  heads: readonly Head[],
): AsyncGenerator<Rewrite[]> {
  for (const head of heads) {
    if (head.column === null) yield rewriteHead(type, head, await headItems(session, app, type, head.sort));
  }
  for (const column of new Set(heads.map((head) => head.column))) {
    if (column === null) continue;
    const addresses = heads.filter((head) => head.column === column).flatMap((head) => head.addresses);
    const values = addresses.flatMap((address) => (address.kind === "filter" ? [address.value] : []));
    yield* facetAnswers(session, app, type, column, values);
  }
}
