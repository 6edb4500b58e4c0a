/** Records a build in the database, by which later builds know that it still has everything that this one has read. */
import { randomUUID } from "node:crypto";
import type { Database } from "../../shared/database/database.ts";
import { isForbidden, isReadOnly } from "../../shared/database/errors.ts";
import { sql } from "../../shared/sql/query.ts";
import { type TreeApp, UNRECORDED } from "../../shared/tree.ts";
import type { BuildIds } from "./delta.ts";

/** Chooses the UUIDs with which the database records a build: of the tree, of this build and of earlier builds. */
export function chooseBuildIds(treeApps: readonly TreeApp[]): BuildIds {
  const states = treeApps.flatMap(({ state }) => state ?? []);
  const earlierMarks = [...new Set(states.map(({ mark }) => mark))].filter((mark) => mark !== UNRECORDED);
  return { tree: states[0]?.tree ?? randomUUID(), mark: randomUUID(), earlierMarks };
}

/**
 * Records the mark of a build in the database, and adds up counts that writers have left in separate rows. When it
 * resolves, everything that the build has read, and then the mark, is on the database's disk. Otherwise a crash could
 * lose a transaction that the build has read, because an asynchronous commit is visible before it is on disk. The ID of
 * that transaction would be assigned again, and incremental builds would not notice what the second one changed.
 *
 * Resolves with false when the role may not write: then the next build is full.
 */
export async function recordBuild(database: Database, { tree, mark, earlierMarks }: BuildIds): Promise<boolean> {
  try {
    await database.transaction("write", async (session) => {
      // A synchronous commit of a transaction that has written also flushes all earlier commits.
      await session.query(sql("SELECT set_config('synchronous_commit', 'on', true)"));
      await session.query(
        sql("SELECT precast.keep_mark($1::uuid, $2::uuid, $3::uuid[])::text", [tree, mark, earlierMarks]),
      );
      await session.query(sql("SELECT precast.fold_crowded()::text"));
    });
    return true;
  } catch (error) {
    if (!(isReadOnly(error) || isForbidden(error)) || (await isReplica(database))) throw error;
    return false;
  }
}

/** A replica may be behind what was built from its primary. */
async function isReplica(database: Database): Promise<boolean> {
  const [row] = await database.query(sql("SELECT pg_is_in_recovery()::text"));
  return row?.[0] === "true";
}
