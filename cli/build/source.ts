/** Tells which database this is and what it shows: what has changed since can be told of the same one alone. */
import { type Session, sql } from "../../shared/database/database.ts";

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
