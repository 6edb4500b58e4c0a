/** What a server of PostgreSQL says of itself: whose data it has, and how much of the log they come by. */
import { type Row, type Session, sql } from "../../shared/database/database.ts";

export type Instance = {
  /** The same for a primary and all that were copied from it. */
  readonly system: string;
  /** The name of the database. */
  readonly database: string;
  /** The version of the order by which its indexes hold texts; null where that has none. */
  readonly order: string | null;
  /** When the server was started. */
  readonly started: string;
  /** The branch of its data: a promotion begins another, with a higher number. A replica may tell late that it is on one. */
  readonly timeline: number;
  /** It takes its data from another, and takes no writes. */
  readonly recovering: boolean;
  /** The end of its log, or as far as it has come with that of the other. */
  readonly position: bigint;
  /** Milliseconds since what it has last applied was committed, while it holds more of the log; null when it holds no more. */
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
  const [system, database, order, started, timeline, recovering, position, unapplied] = rows[0] as Row;
  return {
    system: system as string,
    database: database as string,
    order: order ?? null,
    started: started as string,
    timeline: Number(timeline),
    recovering: recovering === "true",
    position: BigInt(position ?? 0),
    unapplied: unapplied == null ? null : Number(unapplied),
  };
}
