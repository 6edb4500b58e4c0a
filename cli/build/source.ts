/** Tells which database this is and what it shows: what has changed since can be told of the same one alone. */
import { type Database, type Session, sql } from "../../shared/database/database.ts";
import type { TreeState } from "../../shared/state.ts";

export type Source = {
  /** Another server, another history of it, another table of entries or another way of sorting gives another text. */
  readonly source: string;
  /** The text of the `pg_snapshot` in which the session reads. */
  readonly snapshot: string;
  /** Of the builds whose trees this database is known to. */
  readonly marks: ReadonlySet<string>;
};

/** By what a database knows a tree. */
export type Marking = Pick<TreeState, "tree" | "mark"> & {
  /** The marks of the builds that parts of the tree are of. */
  readonly held: readonly string[];
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

/** Whether the database has all that the build of this state has seen. */
export function isOf({ source, marks }: Pick<Source, "source" | "marks">, state: TreeState): boolean {
  return state.source === source && marks.has(state.mark);
}

/**
 * Leaves the mark of a build, and adds up what writers have left to be added up. Resolves when all that was seen of the database
 * is on its disk, and the mark behind it: what commits without waiting for the disk can be seen before, and lost. Its
 * transaction's number would go to another, which a tree that saw the lost one would never notice.
 */
export async function settleSource(database: Database, { tree, mark, held }: Marking): Promise<void> {
  await database.transaction("write", async (session) => {
    // A commit that has written flushes all before it.
    await session.query(sql("SELECT set_config('synchronous_commit', 'on', true)"));
    await session.query(sql("SELECT precast.keep_mark($1::uuid, $2::uuid, $3::uuid[])::text", [tree, mark, held]));
    await session.query(sql("SELECT precast.fold_crowded()::text"));
  });
}
