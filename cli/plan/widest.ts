/** Finds the widest publication: how many files the publication of a single entry would write at most. */
import { lastPage } from "../../shared/api/answer.ts";
import { type App, defaultPerPage } from "../../shared/api/catalog.ts";
import type { Session } from "../../shared/database/database.ts";
import { widestEntryQuery } from "../../shared/sql/tree.ts";
import { countSortFiles, filterColumns } from "../builder/lists.ts";

/** The files of one publication: the entry and the catalog, and the lists that the entry is in or that count it. */
export type Publication = {
  readonly app: string;
  readonly type: string;
  readonly files: number;
  readonly pages: number;
  readonly filters: number;
  readonly sorts: number;
};

/** Null when there is no entry. */
export async function findWidest(session: Session, apps: readonly App[]): Promise<Publication | null> {
  let widest: Publication | null = null;
  for (const app of apps) {
    for (const type of app.types) {
      const [row = []] = await session.query(widestEntryQuery(app.key, type, filterColumns(type)));
      const [entries = 0, filters = 0] = row.map(Number);
      const [pages, sorts] = [lastPage(entries, defaultPerPage(type)), countSortFiles(type)];
      const files = 1 + pages + filters + sorts + 1;
      if (entries > 0 && files > (widest?.files ?? 0))
        widest = { app: app.key, type: type.slug, files, pages, filters, sorts };
    }
  }
  return widest;
}
