/** Tells which database this is and what it shows: what has changed since can be told of the same one alone. */
import { type Database, type Session, sql } from "../../shared/database/database.ts";

export type Source = {
  /** Another server, another history of it, another table of entries or another way of sorting gives another text. */
  readonly source: string;
  /** The text of the `pg_snapshot` in which the session reads. */
  readonly snapshot: string;
};

export async function readSource(session: Session): Promise<Source> {
  const [row] = await session.query(
    sql(`SELECT concat_ws(' ', system.system_identifier, checkpoint.timeline_id, here.oid,
  'precast.entries'::regclass::oid, pg_collation_actual_version('"und-x-icu"'::regcollation)), pg_current_snapshot()::text
FROM pg_control_system() AS system, pg_control_checkpoint() AS checkpoint, pg_database AS here
WHERE here.datname = current_database()`),
  );
  return { source: row?.[0] ?? "", snapshot: row?.[1] ?? "" };
}

/**
 * Resolves when all that was seen of the database is on its disk. What commits without waiting for the disk can be seen
 * before, and lost: its transaction's number would go to another, which a tree that saw the lost one would never notice.
 */
export async function settleSource(database: Database): Promise<void> {
  await database.transaction("write", async (session) => {
    await session.query(sql("SELECT set_config('synchronous_commit', 'on', true)"));
    // A commit that has written flushes all before it. A standby shows only what its primary has flushed.
    await session.query(
      sql("SELECT CASE WHEN NOT pg_is_in_recovery() THEN pg_logical_emit_message(true, 'precast', 'build')::text END"),
    );
  });
}
