/** Counts the files that a complete tree has, so that progress shows the right total from the start. */
import { lastPage } from "../../../shared/body.ts";
import { type App, type ContentType, defaultPerPage } from "../../../shared/catalog.ts";
import type { Session } from "../../../shared/database/database.ts";
import { countsOf, entryCountsQuery } from "../../../shared/sql/counts.ts";
import { facetCountQuery } from "../../../shared/sql/facet-query.ts";
import { filterColumns } from "./filters.ts";
import { countSortFiles } from "./sorts.ts";

/** Number of all files of an app. */
export async function countFiles(session: Session, app: App): Promise<number> {
  const counts = countsOf(await session.query(entryCountsQuery(app.key)));
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
