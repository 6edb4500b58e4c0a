/** Counts the files that a build of an app will have, so that its progress is true from the start. */
import { lastPage } from "../../shared/body.ts";
import { type App, type ContentType, defaultPerPage } from "../../shared/catalog.ts";
import type { Session } from "../../shared/database/database.ts";
import { countsOf } from "../../shared/live.ts";
import { entryCountsQuery, valueCountQuery } from "../../shared/query.ts";
import { filterColumns, sortSpellings } from "./answers.ts";

export async function countFiles(session: Session, app: App): Promise<number> {
  const counts = countsOf(await session.query(entryCountsQuery(app.key)));
  let files = 1;
  for (const type of app.types) files += await countType(session, app, type, counts.get(type.slug) ?? 0);
  return files;
}

async function countType(session: Session, app: App, type: ContentType, entries: number): Promise<number> {
  let files = 1 + entries + lastPage(entries, defaultPerPage(type)) + sortSpellings(type).length;
  for (const column of filterColumns(type)) {
    const rows = await session.query(valueCountQuery(app.key, type, column));
    files += Number(rows[0]?.[0] ?? 0);
  }
  return files;
}
