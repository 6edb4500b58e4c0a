/**
 * Builds the filter answers of a type: some are gathered while all entries are read, the others are queried. Source:
 * contract.md section 8.
 */
import { type App, type Column, type ContentType, defaultPerPage, findColumn } from "../../../shared/catalog.ts";
import { readBatches } from "../../../shared/database/cursor.ts";
import type { Session } from "../../../shared/database/database.ts";
import { renderEntry } from "../../../shared/entry.ts";
import { type EntryRow, readEntryRow } from "../../../shared/entry-row.ts";
import { spellNumber } from "../../../shared/facet.ts";
import { shownOfList } from "../../../shared/shown.ts";
import { facetCountQuery, facetHeadsQuery } from "../../../shared/sql/facet-query.ts";
import { type FilterGatherer, filterAnswer, gatherFirstPages, gatherUnique } from "./filter-gatherer.ts";
import type { FreeAnswer } from "./free-answer.ts";

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
