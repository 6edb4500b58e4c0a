/**
 * Builds the first pages of a type's lists: of every filter value, gathered while all entries are read or queried, and of
 * every free sort order. Source: shared/contract.md section 8.
 */
import type { FreeAnswer } from "../../shared/api/address.ts";
import { listBody } from "../../shared/api/answer.ts";
import {
  type App,
  type Column,
  type ContentType,
  defaultPerPage,
  findColumn,
  TIMESTAMPS,
} from "../../shared/api/catalog.ts";
import { readSort, type Sort, shownOfList } from "../../shared/api/columns.ts";
import { type EntryRow, findFacets, readEntryRow, renderEntry, spellNumber } from "../../shared/api/entry.ts";
import type { Session } from "../../shared/database/database.ts";
import { readBatches } from "../../shared/database/database.ts";
import { facetCountQuery, facetHeadsQuery, headIdsQuery, headQuery } from "../../shared/sql/tree.ts";

/** Maximum number of list items kept in memory for the filters of one column, if the type is not small. */
const MAX_GATHERED_ITEMS = 20_000;

export function filterColumns(type: ContentType): Column[] {
  return type.filterable_fields.map((name) => findColumn(type, name)).filter((column) => column !== undefined);
}

/**
 * Decides for each filterable column how to build its filter answers: gathered while all entries are read if memory
 * allows, as it always does for a small type, else queried from the database.
 */
export async function chooseFilters(session: Session, app: App, type: ContentType, isSmall: boolean) {
  const gatherers: FilterGatherer[] = [];
  const queried: Column[] = [];
  for (const column of filterColumns(type)) {
    if (isSmall) {
      gatherers.push(gatherFirstPages(type, column));
      continue;
    }
    const [count] = await session.query(facetCountQuery(app.key, type, column));
    const [values, largest] = [Number(count?.[0]), Number(count?.[1])];
    if (largest <= 1) gatherers.push(gatherUnique(type, column));
    else if (values * defaultPerPage(type) <= MAX_GATHERED_ITEMS) gatherers.push(gatherFirstPages(type, column));
    else queried.push(column);
  }
  return { gatherers, queried };
}

/** Queries the filter answers of a column: of `values`, in canonical spelling, or of all values if that is null. */
export async function* filterAnswers(
  session: Session,
  app: App,
  type: ContentType,
  column: Column,
  values: readonly string[] | null,
): AsyncGenerator<FreeAnswer[]> {
  const shown = shownOfList(type);
  type FirstPage = { readonly value: string; readonly total: number; readonly items: string[] };
  const makeAnswer = (page: FirstPage) =>
    filterAnswer(type, column, column.type === "number" ? spellNumber(page.value) : page.value, page);
  let pages: FirstPage[] = [];
  const query = facetHeadsQuery(app.key, type, column, defaultPerPage(type), values);
  for await (const rows of readBatches(session, query)) {
    for (const row of rows) {
      const [marked, total] = row as [string, string];
      const value = marked.slice(1);
      if (pages.at(-1)?.value !== value) pages.push({ value, total: Number(total), items: [] });
      pages.at(-1)?.items.push(renderEntry(app, shown, readEntryRow(row, 2) as EntryRow));
    }
    // The entries of the last value may continue in the next batch.
    yield pages.slice(0, -1).map(makeAnswer);
    pages = pages.slice(-1);
  }
  yield pages.map(makeAnswer);
}

// Gathers the first page of every value of a filterable column while the entries of a type pass by in order.

type FilterGatherer = {
  readonly column: Column;
  /** Takes the next entry: its value in the column, as JSON text, and its list item. Returns the completed answers. */
  readonly add: (jsonText: string, item: string) => FreeAnswer[];
  /** Returns the answers that are complete only after the last entry, each made when it is asked for. */
  readonly rest: () => Iterable<FreeAnswer>;
};

type FirstPage = { total: number; readonly items: string[] };

/** Keeps up to a page of items for each value: for columns with few values, or types with few entries. */
function gatherFirstPages(type: ContentType, column: Column): FilterGatherer {
  const perPage = defaultPerPage(type);
  const pages = new Map<string, FirstPage>();
  const add = (jsonText: string, item: string) => {
    for (const value of findFacets(column, jsonText)) {
      const page = pages.get(value) ?? { total: 0, items: [] };
      if (page.total === 0) pages.set(value, page);
      page.total += 1;
      if (page.items.length < perPage) page.items.push(item);
    }
    return [];
  };
  function* rest() {
    for (const [value, page] of pages) yield filterAnswer(type, column, value, page);
  }
  return { column, add, rest };
}

/** Keeps no items, because each entry completes its answers: for columns in which no two entries share a value. */
function gatherUnique(type: ContentType, column: Column): FilterGatherer {
  const add = (jsonText: string, item: string) =>
    findFacets(column, jsonText).map((value) => filterAnswer(type, column, value, { total: 1, items: [item] }));
  return { column, add, rest: () => [] };
}

function filterAnswer(
  type: ContentType,
  column: Column,
  value: string,
  { total, items }: { readonly total: number; readonly items: readonly string[] },
): FreeAnswer {
  return {
    address: { kind: "filter", slug: type.slug, field: column.name, value },
    body: listBody(items, { page: 1n, perPage: defaultPerPage(type), total }),
  };
}

// The first page of every free sort order.

/** A sort order that a free request can ask for, with every value of `sort` that means it. */
type SortOrder = { readonly sort: Sort; readonly spellings: readonly string[] };

export function sortOrders(type: ContentType): SortOrder[] {
  const names = [...new Set([...type.sortable_fields, ...TIMESTAMPS])];
  const orders = new Map<string, { sort: Sort; spellings: string[] }>();
  for (const spelling of names.flatMap((name) => [name, `-${name}`])) {
    const sort = readSort(type, spelling);
    if (sort === null) continue;
    const key = `${sort.column.name} ${sort.descending}`;
    const order = orders.get(key) ?? { sort, spellings: [] };
    orders.set(key, order);
    order.spellings.push(spelling);
  }
  return [...orders.values()];
}

/** Number of files for the sorts of a type. */
export function countSortFiles(type: ContentType): number {
  return sortOrders(type).reduce((sum, { spellings }) => sum + spellings.length, 0);
}

/** Queries the sort answers of a type, one query per order. `total` is the number of its published entries. */
export async function* sortAnswers(
  session: Session,
  app: App,
  type: ContentType,
  total: number,
): AsyncGenerator<FreeAnswer[]> {
  const meta = { page: 1n, perPage: defaultPerPage(type), total };
  for (const order of sortOrders(type)) {
    yield spelledAnswers(type, order, listBody(await firstPageItems(session, app, type, order.sort), meta));
  }
}

/** Builds the sort answers of a type with one query for ids. `items` holds the list items of all its entries by id. */
export async function* sortAnswersOf(
  session: Session,
  app: App,
  type: ContentType,
  items: ReadonlyMap<string, string>,
): AsyncGenerator<FreeAnswer[]> {
  const perPage = defaultPerPage(type);
  const orders = sortOrders(type);
  const sorts = orders.map(({ sort }) => sort);
  const [ids] = items.size === 0 ? [] : await session.query(headIdsQuery(app.key, type, sorts, perPage));
  for (const [index, order] of orders.entries()) {
    const first = (ids?.[index] ?? "").split(",").filter((id) => id !== "");
    const body = listBody(
      first.map((id) => items.get(id) as string),
      { page: 1n, perPage, total: items.size },
    );
    yield spelledAnswers(type, order, body);
  }
}

/** The list items of the first page in a sort order. */
export async function firstPageItems(session: Session, app: App, type: ContentType, sort: Sort): Promise<string[]> {
  const shown = shownOfList(type);
  const rows = await session.query(headQuery(app.key, type, sort, defaultPerPage(type)));
  return rows.map((row) => renderEntry(app, shown, readEntryRow(row, 0) as EntryRow));
}

function spelledAnswers(type: ContentType, { spellings }: SortOrder, body: string): FreeAnswer[] {
  return spellings.map((sort) => ({ address: { kind: "sort", slug: type.slug, sort }, body }));
}
