/** Says whether a replica may answer live requests, and describes for operators why not. */
import type { Database, Session } from "../shared/database/database.ts";
import { type Row, sql } from "../shared/sql/query.ts";

/** Why a replica is not used, by kind of status. */
const REASONS = {
  /** The checks have not run long enough yet to prove that its lag is small enough. */
  new: "its lag is not known yet",
  unmigrated: "it lacks the current schema of Precast",
  detached: "it accepts writes and does not follow the primary",
  /** While the primary still answers, so their data may differ. */
  diverged: "it follows a promoted server instead of the primary",
  /** As after a failover to another replica that had received less. */
  ahead: "it has changes that the primary lacks, so it does not follow the primary",
  disordered:
    "it has a different ICU version than the primary, so its copies of the primary's indexes may be in the wrong order",
  foreign: "it is not a copy of the database at --database-url",
};

export type UnusedKind = keyof typeof REASONS;

export type ReplicaStatus =
  /** `lag` is its maximum lag in milliseconds; null when it is unknown because the primary has never answered. */
  | { readonly kind: "used"; readonly lag: number | null }
  /** `lag` is in milliseconds; null when it is longer than can be measured. */
  | { readonly kind: "behind"; readonly lag: number | null }
  | { readonly kind: "away"; readonly why: string }
  | { readonly kind: UnusedKind };

/** Null for a replica that is used. */
export function describeStatus(status: ReplicaStatus): string | null {
  switch (status.kind) {
    case "used":
      return null;
    case "behind":
      return status.lag === null
        ? "its lag exceeds --max-replica-lag"
        : `its lag of ${Math.ceil(status.lag / 1_000)} s exceeds --max-replica-lag`;
    case "away":
      return `it does not answer (${status.why})`;
    default:
      return REASONS[status.kind];
  }
}

/** For health and metrics: `error` says why the replica is not used, and `lag_seconds` is null when it is unknown. */
export function readHealth(status: ReplicaStatus) {
  const lag = "lag" in status && status.lag !== null ? Math.round(status.lag) / 1_000 : null;
  return { ready: status.kind === "used", lag_seconds: lag, error: describeStatus(status) };
}

// Reads what a PostgreSQL server reports about itself: which data it has, and its position in the write-ahead log.

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

// Computes how far a replica is behind, from its log position and where the primary's log ended at known times.

/** Where the primary's log ended at `time`, a performance.now(). */
export type Mark = { readonly time: number; readonly position: bigint };

/**
 * Adds a mark and drops those older than `window` milliseconds. Marks stay in order of both time and position. Of marks
 * with the same position only the latest is kept, as it proves the most. Marks with a higher position are dropped: the
 * log is then that of another server, which has never reached them.
 */
export function addMark(marks: readonly Mark[], mark: Mark, window: number): readonly Mark[] {
  return [...marks.filter(({ time, position }) => position < mark.position && time > mark.time - window), mark];
}

/** Maximum lag in milliseconds of a server at this position; null when no mark proves a maximum. */
export function findLag(marks: readonly Mark[], position: bigint, now: number): number | null {
  const mark = marks.findLast((one) => one.position <= position);
  return mark === undefined ? null : now - mark.time;
}

/**
 * Whether the primary, after `time`, had not yet written the log up to this position: a server that had replayed it by
 * then does not follow this primary.
 */
export function isBeyond(marks: readonly Mark[], position: bigint, time: number): boolean {
  const last = marks.at(-1);
  return last !== undefined && last.time > time && last.position < position;
}

// What is known of the primary by repeated checks, so that replicas can be compared with it.

export type PrimaryLog = {
  /** The state of the primary when it last answered; null when it never has. */
  readonly primary: Instance | null;
  readonly marks: readonly Mark[];
  /** When it first answered, by `performance.now()`. */
  readonly since: number;
  /** Whether it did not answer the last check. */
  readonly isAway: boolean;
};

export const UNCHECKED: PrimaryLog = { primary: null, marks: [], since: 0, isAway: false };

/** `memory` is how many milliseconds of log positions are remembered. */
export async function checkPrimary(database: Database, log: PrimaryLog, memory: number): Promise<PrimaryLog> {
  // Taken before the query, so that the position it returns includes everything written up to this time.
  const time = performance.now();
  try {
    const primary = await withDeadline(database, readInstance);
    const marks = addMark(log.marks, { time, position: primary.position }, memory);
    return { primary, marks, since: log.primary === null ? time : log.since, isAway: false };
  } catch {
    return { ...log, isAway: true };
  }
}

/** The time for which lags are computed: while the primary is away, nothing is written that a replica could lack. */
export function findTime({ marks, since, isAway }: PrimaryLog): number {
  return isAway ? (marks.at(-1)?.time ?? since) : performance.now();
}

// Limits how long a server may take to report its state.

const LIMIT = 1_000;

/** Runs `ask` with queries that are cancelled after the limit; then it throws an Error that names the limit. */
export async function withDeadline<T>(database: Database, ask: (session: Session) => Promise<T>): Promise<T> {
  const signal = AbortSignal.timeout(LIMIT);
  try {
    return await ask({ query: (query) => database.query(query, signal), execute: database.execute });
  } catch (error) {
    throw signal.aborted ? new Error(`no answer within ${LIMIT / 1_000} s`, { cause: error }) : error;
  }
}
