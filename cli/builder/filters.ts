/**
 * Builds the filter answers of a type: some are gathered while all entries are read, the others are queried. Source:
 * contract.md section 8.
 */
import type { FreeAnswer } from "../../shared/api/address.ts";
import { listBody } from "../../shared/api/answer.ts";
import { type App, type Column, type ContentType, defaultPerPage, findColumn } from "../../shared/api/catalog.ts";
import { shownOfList } from "../../shared/api/columns.ts";
import { type EntryRow, facetsOf, readEntryRow, renderEntry, spellNumber } from "../../shared/api/entry.ts";
import { readBatches } from "../../shared/database/cursor.ts";
import type { Session } from "../../shared/database/database.ts";
import { facetCountQuery, facetHeadsQuery } from "../../shared/sql/tree.ts";

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
  const answerOf = (page: FirstPage) =>
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
    yield pages.slice(0, -1).map(answerOf);
    pages = pages.slice(-1);
  }
  yield pages.map(answerOf);
}

// Gathers the first page of every value of a filterable column while the entries of a type pass by in order.

type FilterGatherer = {
  readonly column: Column;
  /** Takes the next entry: its value in the column, as JSON text, and its list item. Returns the completed answers. */
  readonly add: (raw: string, item: string) => FreeAnswer[];
  /** Returns the answers that are complete only after the last entry, each made when it is asked for. */
  readonly rest: () => Iterable<FreeAnswer>;
};

type FirstPage = { total: number; readonly items: string[] };

/** Keeps up to a page of items for each value: for columns with few values, or types with few entries. */
function gatherFirstPages(type: ContentType, column: Column): FilterGatherer {
  const perPage = defaultPerPage(type);
  const pages = new Map<string, FirstPage>();
  const add = (raw: string, item: string) => {
    for (const value of facetsOf(column, raw)) {
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
  const add = (raw: string, item: string) =>
    facetsOf(column, raw).map((value) => filterAnswer(type, column, value, { total: 1, items: [item] }));
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
