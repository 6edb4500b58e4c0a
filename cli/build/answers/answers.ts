/**
 * Enumerates every free request of an app together with its answer, in the order in which they can be written: whatever
 * an answer names comes before it. Memory does not grow with the number of entries. Source: contract.md section 8.
 */
import { catalogBody, entryBody, lastPage, listBody, schemaBody } from "../../../shared/body.ts";
import {
  type App,
  type Column,
  type ContentType,
  defaultPerPage,
  findColumn,
  TIMESTAMPS,
} from "../../../shared/catalog.ts";
import { readBatches } from "../../../shared/database/cursor.ts";
import type { Session } from "../../../shared/database/database.ts";
import { type EntryRow, readEntryRow, renderEntry } from "../../../shared/entry.ts";
import { spellNumber } from "../../../shared/facet.ts";
import { countsOf } from "../../../shared/live.ts";
import { shownOfEntry, shownOfList } from "../../../shared/shown.ts";
import { readSort, type Sort } from "../../../shared/sort.ts";
import { entryCountsQuery } from "../../../shared/sql/query.ts";
import {
  entriesQuery,
  facetCountQuery,
  facetHeadsQuery,
  headIdsQuery,
  headQuery,
} from "../../../shared/sql/tree-query.ts";
import type { FreeAnswer } from "./free-answer.ts";
import { gatherHeads, type HeadGatherer, headAnswer, passHeads } from "./head.ts";

/** Types of up to so many entries are kept in memory, which saves queries. */
const SMALL = 1_000;
/** Of larger types, so many items may be kept for the filters of one column. */
const KEPT_ITEMS = 20_000;

/** Batches of answers, out of one snapshot: `session` is in a read transaction. */
export async function* freeAnswers(session: Session, app: App): AsyncGenerator<readonly FreeAnswer[]> {
  const counts = countsOf(await session.query(entryCountsQuery(app.key)));
  for (const type of app.types) yield* typeAnswers(session, app, type, counts.get(type.slug) ?? 0);
  yield overviewAnswers(app, counts);
}

/** The schemas, and the catalog that names them. */
export function overviewAnswers(app: App, counts: ReadonlyMap<string, number>): FreeAnswer[] {
  const schemas = app.types.map((type) => ({
    address: { kind: "schema", slug: type.slug } as const,
    body: schemaBody(type),
  }));
  return [...schemas, { address: { kind: "catalog" }, body: catalogBody(app, counts) }];
}

export function filterColumns(type: ContentType): Column[] {
  return type.filterable_fields.map((name) => findColumn(type, name)).filter((column) => column !== undefined);
}

/** An order that a free `sort` can ask for, with every spelling of it. */
type SortHead = { readonly sort: Sort; readonly spellings: readonly string[] };

export function sortHeads(type: ContentType): SortHead[] {
  const names = [...new Set([...type.sortable_fields, ...TIMESTAMPS])];
  const heads = new Map<string, { sort: Sort; spellings: string[] }>();
  for (const spelling of names.flatMap((name) => [name, `-${name}`])) {
    const sort = readSort(type, spelling);
    if (sort === null) continue;
    const key = `${sort.column.name} ${sort.descending}`;
    const head = heads.get(key) ?? { sort, spellings: [] };
    heads.set(key, head);
    head.spellings.push(spelling);
  }
  return [...heads.values()];
}

/** How many files the sorts of a type have. */
export function countSorts(type: ContentType): number {
  return sortHeads(type).reduce((sum, { spellings }) => sum + spellings.length, 0);
}

function sortAnswers(type: ContentType, { spellings }: SortHead, body: string): FreeAnswer[] {
  return spellings.map((sort) => ({ address: { kind: "sort", slug: type.slug, sort }, body }));
}

/** Everything of a type but its schema. `total` is how many entries it shows. */
export async function* typeAnswers(
  session: Session,
  app: App,
  type: ContentType,
  total: number,
): AsyncGenerator<FreeAnswer[]> {
  const perPage = defaultPerPage(type);
  const kept = total <= SMALL ? new Map<string, string>() : null;
  const { gatherers, queried } = await chooseFilters(session, app, type, total);
  const pages = openPages(type, total);
  const query = entriesQuery(app.key, type);
  for await (const rows of kept === null ? readBatches(session, query) : [await session.query(query)]) {
    const batch: FreeAnswer[] = [];
    for (const row of rows) {
      const entry = readEntryRow(row, 0) as EntryRow;
      const item = renderEntry(app, pages.shown, entry);
      batch.push(entryAnswer(app, type, entry));
      batch.push(...pages.add(item));
      for (const gatherer of gatherers) batch.push(...gatherer.add(entry, item));
      kept?.set(entry.id, item);
    }
    yield batch;
  }
  yield [...pages.rest(), ...gatherers.flatMap((gatherer) => gatherer.rest())];
  for (const column of queried) yield* facetAnswers(session, app, type, column, null);
  const meta = { page: 1n, perPage, total };
  if (kept !== null) yield await smallSorts(session, app, type, kept);
  else {
    for (const head of sortHeads(type)) {
      yield sortAnswers(type, head, listBody(await headItems(session, app, type, head.sort), meta));
    }
  }
}

/** An entry by itself. */
export function entryAnswer(app: App, type: ContentType, entry: EntryRow): FreeAnswer {
  return {
    address: { kind: "entry", slug: type.slug, id: entry.id },
    body: entryBody(renderEntry(app, shownOfEntry(type), entry)),
  };
}

/** Fills default pages with items; `add` gives the pages that are full with it. */
export function openPages(type: ContentType, total: number) {
  const perPage = defaultPerPage(type);
  let items: string[] = [];
  let page = 0n;
  const next = (): FreeAnswer[] => {
    const body = listBody(items, { page: ++page, perPage, total });
    items = [];
    return [{ address: { kind: "page", slug: type.slug, page }, body }];
  };
  return {
    shown: shownOfList(type),
    add: (item: string) => (items.push(item) === perPage ? next() : []),
    rest: () => (page < lastPage(total, perPage) ? next() : []),
  };
}

/** A column's filters are gathered in passing where memory allows, else asked of the database. */
async function chooseFilters(session: Session, app: App, type: ContentType, total: number) {
  const gatherers: HeadGatherer[] = [];
  const queried: Column[] = [];
  for (const column of filterColumns(type)) {
    if (total <= SMALL) {
      gatherers.push(gatherHeads(type, column));
      continue;
    }
    const [count] = await session.query(facetCountQuery(app.key, type, column));
    const [values, largest] = [Number(count?.[0]), Number(count?.[1])];
    if (largest <= 1) gatherers.push(passHeads(type, column));
    else if (values * defaultPerPage(type) <= KEPT_ITEMS) gatherers.push(gatherHeads(type, column));
    else queried.push(column);
  }
  return { gatherers, queried };
}

/** The filters of a column, asked of the database: those of these values, or all. */
export async function* facetAnswers(
  session: Session,
  app: App,
  type: ContentType,
  column: Column,
  values: readonly string[] | null,
): AsyncGenerator<FreeAnswer[]> {
  const shown = shownOfList(type);
  type Gathered = { readonly value: string; readonly total: number; readonly items: string[] };
  const answerOf = (head: Gathered) =>
    headAnswer(type, column, column.type === "number" ? spellNumber(head.value) : head.value, head);
  let heads: Gathered[] = [];
  const query = facetHeadsQuery(app.key, type, column, defaultPerPage(type), values);
  for await (const rows of readBatches(session, query)) {
    for (const row of rows) {
      const [value, total] = row as [string, string];
      if (heads.at(-1)?.value !== value) heads.push({ value, total: Number(total), items: [] });
      heads.at(-1)?.items.push(renderEntry(app, shown, readEntryRow(row, 2) as EntryRow));
    }
    // The last value's entries may go on in the next batch.
    yield heads.slice(0, -1).map(answerOf);
    heads = heads.slice(-1);
  }
  yield heads.map(answerOf);
}

/** The items of the first page by a sort. */
export async function headItems(session: Session, app: App, type: ContentType, sort: Sort): Promise<string[]> {
  const shown = shownOfList(type);
  const rows = await session.query(headQuery(app.key, type, sort, defaultPerPage(type)));
  return rows.map((row) => renderEntry(app, shown, readEntryRow(row, 0) as EntryRow));
}

/** The sorts of a type whose items are all at hand, by one query. */
async function smallSorts(
  session: Session,
  app: App,
  type: ContentType,
  items: ReadonlyMap<string, string>,
): Promise<FreeAnswer[]> {
  const perPage = defaultPerPage(type);
  const heads = sortHeads(type);
  const sorts = heads.map(({ sort }) => sort);
  const [ids] = items.size === 0 ? [] : await session.query(headIdsQuery(app.key, type, sorts, perPage));
  return heads.flatMap((head, index) => {
    const first = (ids?.[index] ?? "").split(",").filter((id) => id !== "");
    const body = listBody(
      first.map((id) => items.get(id) as string),
      { page: 1n, perPage, total: items.size },
    );
    return sortAnswers(type, head, body);
  });
}
