/**
 * Enumerates every free request of an app together with its answer, in an order in which they can be written: entries
 * come before the lists that contain them, schemas before the catalog. Memory use does not grow with the number of
 * entries. Source: shared/contract.md section 8.
 */
import type { FreeAnswer } from "../../shared/api/address.ts";
import { catalogBody, entryBody, lastPage, listBody, schemaBody } from "../../shared/api/answer.ts";
import { type App, type ContentType, defaultPerPage } from "../../shared/api/catalog.ts";
import { shownOfEntry, shownOfList } from "../../shared/api/columns.ts";
import { columnValues, type EntryRow, readEntryRow, renderEntry } from "../../shared/api/entry.ts";
import type { Session } from "../../shared/database/database.ts";
import { readBatches } from "../../shared/database/database.ts";
import { entryCountsQuery, readCounts } from "../../shared/sql/counts.ts";
import { allEntriesQuery, facetCountQuery } from "../../shared/sql/tree.ts";
import { chooseFilters, countSortFiles, filterAnswers, filterColumns, sortAnswers, sortAnswersOf } from "./lists.ts";

/** For a type with at most this many entries, all list items are kept in memory, which saves queries. */
const SMALL_TYPE_ENTRIES = 1_000;
/** The entries of a type with at most this many are read by a single query instead of a cursor. */
const SINGLE_QUERY_ENTRIES = 50;

/** Yields batches of answers. `session` must be in a read transaction, so that all come from one snapshot. */
export async function* freeAnswers(session: Session, app: App): AsyncGenerator<Iterable<FreeAnswer>> {
  const counts = readCounts(await session.query(entryCountsQuery(app.key)));
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

/**
 * Yields all answers of a type except its schema, batch by batch. `total` is the number of its published entries. The
 * filters and sorts of a small type can be many times as large as its list items, so their answers are made one by one.
 */
export async function* typeAnswers(
  session: Session,
  app: App,
  type: ContentType,
  total: number,
): AsyncGenerator<Iterable<FreeAnswer>> {
  const isSmall = total <= SMALL_TYPE_ENTRIES;
  const itemsById = isSmall ? new Map<string, string>() : null;
  const { gatherers, queried } = await chooseFilters(session, app, type, isSmall);
  const gatheredColumns = gatherers.map(({ column }) => column);
  const pages = openPages(type, total);
  const query = allEntriesQuery(app.key, type);
  for await (const rows of total <= SINGLE_QUERY_ENTRIES ? [await session.query(query)] : readBatches(session, query)) {
    const batch: FreeAnswer[] = [];
    for (const row of rows) {
      const entry = readEntryRow(row, 0) as EntryRow;
      const item = renderEntry(app, pages.shown, entry);
      batch.push(entryAnswer(app, type, entry));
      batch.push(...pages.add(item));
      const values = columnValues(gatheredColumns, entry);
      for (const [index, gatherer] of gatherers.entries()) batch.push(...gatherer.add(values[index] as string, item));
      itemsById?.set(entry.id, item);
    }
    yield batch;
  }
  yield pages.rest();
  for (const gatherer of gatherers) yield gatherer.rest();
  for (const column of queried) yield* filterAnswers(session, app, type, column, null);
  if (itemsById !== null) yield* sortAnswersOf(session, app, type, itemsById);
  else yield* sortAnswers(session, app, type, total);
}

/** The answer to the request for a single entry. */
export function entryAnswer(app: App, type: ContentType, entry: EntryRow): FreeAnswer {
  return {
    address: { kind: "entry", slug: type.slug, id: entry.id },
    body: entryBody(renderEntry(app, shownOfEntry(type), entry)),
  };
}

// Builds the default pages of a type while its entries are read in order. Source: shared/contract.md section 8.

/** `add` returns the page that the item fills, if it does; `rest` returns the last page if that is not full. */
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

// Counts the files that a complete tree has, so that progress shows the right total from the start.

/** Number of all files of an app. */
export async function countFiles(session: Session, app: App): Promise<number> {
  const counts = readCounts(await session.query(entryCountsQuery(app.key)));
  let files = 1 + app.types.length;
  for (const type of app.types) files += await countTypeFiles(session, app, type, counts.get(type.slug) ?? 0);
  return files;
}

/** Number of files of a type without its schema and its filters: entries, pages and sorts. */
export function countUnfilteredFiles(type: ContentType, entries: number): number {
  return entries + lastPage(entries, defaultPerPage(type)) + countSortFiles(type);
}

/** Number of files of a type without its schema. */
export async function countTypeFiles(session: Session, app: App, type: ContentType, entries: number): Promise<number> {
  let files = countUnfilteredFiles(type, entries);
  for (const column of filterColumns(type)) {
    const rows = await session.query(facetCountQuery(app.key, type, column));
    files += Number(rows[0]?.[0] ?? 0);
  }
  return files;
}
