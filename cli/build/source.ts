/**
 * Identifies the database and the snapshot that a session reads. Changes since a build can be determined only in the
 * database that the build has read.
 */
import type { Database, Session } from "../../shared/database/database.ts";
import { sql } from "../../shared/query.ts";
import type { TreeState } from "../../shared/state.ts";

export type Source = {
  /** Differs between servers, their timelines, databases, tables of entries and versions of the ICU collation. */
  readonly source: string;
  /** The text of the `pg_snapshot` in which the session reads. */
  readonly snapshot: string;
  /** Marks (UUIDs) of the builds that are recorded in this database. */
  readonly marks: ReadonlySet<string>;
};

/** The UUIDs with which a build is recorded in the database. */
export type BuildIds = Pick<TreeState, "tree" | "mark"> & {
  /** Marks of the earlier builds that the states of the tree's apps name: the database must not drop these. */
  readonly earlierMarks: readonly string[];
};

export async function readSource(session: Session): Promise<Source> {
  const [row] = await session.query(
    sql(`SELECT concat_ws(' ', system.system_identifier, checkpoint.timeline_id, here.oid,
  'precast.entries'::regclass::oid, pg_collation_actual_version('"und-x-icu"'::regcollation)), pg_current_snapshot()::text,
  (SELECT string_agg(mark::text, ' ') FROM precast.trees CROSS JOIN unnest(marks) AS mark)
FROM pg_control_system() AS system, pg_control_checkpoint() AS checkpoint, pg_database AS here
WHERE here.datname = current_database()`),
  );
  return { source: row?.[0] ?? "", snapshot: row?.[1] ?? "", marks: new Set(row?.[2]?.split(" ")) };
}

/** Whether this is the database of the state's build and still has everything that the build has read. */
export function isSourceOf({ source, marks }: Pick<Source, "source" | "marks">, state: TreeState): boolean {
  return state.source === source && marks.has(state.mark);
}

/**
 * Records the mark of a build in the database, and adds up counts that writers have left in separate rows. When it
 * resolves, everything that the build has read, and then the mark, is on the database's disk. Otherwise a crash could
 * lose a transaction that the build has read, because an asynchronous commit is visible before it is on disk. The ID of
 * that transaction would be assigned again, and incremental builds would not notice what the second one changed.
 */
export async function recordBuild(database: Database, { tree, mark, earlierMarks }: BuildIds): Promise<void> {
  await database.transaction("write", async (session) => {
    // A synchronous commit of a transaction that has written also flushes all earlier commits.
    await session.query(sql("SELECT set_config('synchronous_commit', 'on', true)"));
    await session.query(
      sql("SELECT precast.keep_mark($1::uuid, $2::uuid, $3::uuid[])::text", [tree, mark, earlierMarks]),
    );
    await session.query(sql("SELECT precast.fold_crowded()::text"));
  });
}
