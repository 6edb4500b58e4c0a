/** Reads what a PostgreSQL server reports about itself: which data it has, and its position in the write-ahead log. */
import type { Session } from "../../shared/database/database.ts";
import { type Row, sql } from "../../shared/query.ts";

export type Instance = {
  /** System identifier: the same for a primary and all its physical copies. */
  readonly system: string;
  /** The name of the database. */
  readonly database: string;
  /** Version of the ICU collation, which decides the order of texts in indexes; null when it has none. */
  readonly collationVersion: string | null;
  /** When the server was started: Unix time in seconds, as text. */
  readonly started: string;
  /** Timeline: each promotion begins one with a higher number. A replica may report late that it has changed to one. */
  readonly timeline: number;
  /** Whether it is a standby, which replays the log of another server and accepts no writes. */
  readonly recovering: boolean;
  /** Position in the write-ahead log, in bytes: the end of its own log, or as far as a standby has replayed. */
  readonly position: bigint;
  /** Milliseconds since the commit that it replayed last; null unless it has received more log than it has replayed. */
  readonly unapplied: number | null;
};

export async function readInstance(session: Pick<Session, "query">): Promise<Instance> {
  const rows = await session.query(
    sql(`SELECT system_identifier::text, current_database()::text,
  pg_collation_actual_version('pg_catalog."und-x-icu"'::regcollation), extract(epoch FROM pg_postmaster_start_time())::text,
  timeline_id::text, pg_is_in_recovery()::text,
  ((CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END) - '0/0')::text,
  CASE WHEN pg_is_in_recovery() AND pg_last_wal_receive_lsn() > pg_last_wal_replay_lsn() THEN (1000 * extract(
    epoch FROM clock_timestamp() - coalesce(pg_last_xact_replay_timestamp(), pg_postmaster_start_time())))::text END
FROM pg_control_system(), pg_control_checkpoint()`),
  );
  const [system, database, collationVersion, started, timeline, recovering, position, unapplied] = rows[0] as Row;
  return {
    system: system as string,
    database: database as string,
    collationVersion: collationVersion ?? null,
    started: started as string,
    timeline: Number(timeline),
    recovering: recovering === "true",
    position: BigInt(position ?? 0),
    unapplied: unapplied == null ? null : Number(unapplied),
  };
}
