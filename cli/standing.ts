/** How an app's tree stands to its database: when it was built, and what has changed since. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type AppDefaults, readApp } from "../shared/apps.ts";
import { type Session, sql } from "../shared/database/database.ts";
import { countsOf } from "../shared/live.ts";
import { entryCountsQuery } from "../shared/query.ts";
import { readState, stateFileOf, type TreeState } from "../shared/state.ts";

export type TreeStanding = Pick<TreeState, "built_at" | "files" | "bytes"> & {
  /** Entries that were written since, drafts too. */
  readonly changed: number;
  /** False as well when entries have gone, or when types or fields are others now. */
  readonly current: boolean;
};

/** Null where no tree is built. */
export async function treeStanding(
  session: Session,
  key: string,
  settings: AppDefaults & { readonly out: string },
): Promise<TreeStanding | null> {
  const file = join(settings.out, stateFileOf(key));
  const state = existsSync(file) ? readState(readFileSync(file, "utf8")) : null;
  if (state === null) return null;
  const { built_at, files, bytes } = state;
  const changed = await countChanged(session, key, state.snapshot);
  const counts = countsOf(await session.query(entryCountsQuery(key)));
  const published = [...counts.values()].reduce((sum, count) => sum + count, 0);
  const sameTypes = JSON.stringify(await readApp(session, key, settings)) === JSON.stringify(state.app);
  return { built_at, files, bytes, changed, current: changed === 0 && published === state.entries && sameTypes };
}

async function countChanged(session: Session, key: string, snapshot: string): Promise<number> {
  const rows = await session.query(
    sql(
      `SELECT count(*)::text FROM precast.apps AS app
JOIN precast.content_types AS type ON type.app_id = app.id
JOIN precast.entries AS e ON e.content_type_id = type.id
WHERE app.key = $1 AND NOT pg_visible_in_snapshot(e.changed_in, $2::pg_snapshot)`,
      [key, snapshot],
    ),
  );
  return Number(rows[0]?.[0]);
}
