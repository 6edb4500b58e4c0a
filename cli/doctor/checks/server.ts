/** Finds settings of the PostgreSQL server that slow Precast down or leave it too few connections. */
import { sql } from "../../../shared/query.ts";
import { formatBytes } from "../../terminal/format.ts";
import { type CheckContext, defineCheck } from "../check.ts";
import type { Finding } from "../finding.ts";

type Facts = {
  readonly buffers: number;
  readonly bytes: number;
  readonly autovacuum: boolean;
  /**
   * Connections available to Precast: the lowest of the limits of the role, of the database, and of the server without
   * its reserved connections and those that other clients have open, among them Precast's on other databases.
   */
  readonly free: number;
  /** Number of concurrent live queries that a server may run, and of its processes. */
  readonly connections: number;
  readonly workers: number;
};

export const serverCheck = defineCheck({
  name: "server",
  gather: readServer,
  judge: (facts) =>
    facts === null
      ? []
      : [memoryFinding(facts), vacuumFinding(facts), connectionsFinding(facts)].filter((one) => one !== null),
});

/**
 * Null for the embedded database, which has one connection and fixed settings. A role without `pg_read_all_stats` does
 * not see the `backend_type` of other roles' connections; those that have a role and a database count as clients then.
 */
async function readServer({ database, connections, workers }: CheckContext): Promise<Facts | null> {
  if (database.kind === "embedded") return null;
  const [row] = await database.query(
    sql(`SELECT (SELECT setting::bigint * current_setting('block_size')::bigint FROM pg_settings WHERE name = 'shared_buffers')::text,
  pg_database_size(current_database())::text,
  (current_setting('autovacuum')::boolean AND current_setting('track_counts')::boolean)::text,
  least(
    (SELECT sum(CASE name WHEN 'max_connections' THEN setting::int ELSE -setting::int END) FROM pg_settings
     WHERE name IN ('max_connections', 'superuser_reserved_connections', 'reserved_connections'))
    - (SELECT count(*) FROM pg_stat_activity WHERE coalesce(backend_type = 'client backend', usesysid IS NOT NULL AND datid IS NOT NULL)
       AND (datname IS DISTINCT FROM current_database() OR application_name NOT LIKE 'precast%')),
    (SELECT nullif(rolconnlimit, -1) FROM pg_roles WHERE rolname = current_user AND NOT rolsuper),
    (SELECT nullif(datconnlimit, -1) FROM pg_database, pg_roles
     WHERE datname = current_database() AND rolname = current_user AND NOT rolsuper))::text`),
  );
  const [buffers, bytes, autovacuum, free] = row ?? [];
  return {
    buffers: Number(buffers),
    bytes: Number(bytes),
    autovacuum: autovacuum === "true",
    free: Number(free),
    connections,
    workers,
  };
}

/** Bytes of shared_buffers that PostgreSQL has by default. */
const DEFAULT_BUFFERS = 128 * 1024 * 1024;
const BUFFERS_FACTOR = 8;

function memoryFinding({ buffers, bytes }: Facts): Finding | null {
  if (buffers > DEFAULT_BUFFERS || bytes < buffers * BUFFERS_FACTOR) return null;
  return {
    kind: "advice",
    subject: "shared_buffers",
    problem: `The size of the database is ${formatBytes(bytes)}, but shared_buffers is ${formatBytes(buffers)}, no more than PostgreSQL's default.`,
    gain: "Live queries read more pages from memory.",
    remedy: "Set shared_buffers to a quarter of the machine's memory, and restart PostgreSQL.",
    fix: null,
  };
}

function vacuumFinding({ autovacuum }: Facts): Finding | null {
  if (autovacuum) return null;
  return {
    kind: "advice",
    subject: "autovacuum",
    problem:
      "It is switched off (autovacuum or track_counts is off): PostgreSQL neither updates statistics nor removes dead rows by itself.",
    gain: "Live queries stay fast. Without autovacuum, counts alone become ten times slower.",
    remedy: "Set autovacuum and track_counts to on, and reload the configuration of PostgreSQL.",
    fix: null,
  };
}

/** Connections of a build and a watch. */
const BUILD_CONNECTIONS = 5;

function connectionsFinding({ free, connections, workers }: Facts): Finding | null {
  // Each worker may run at least one live query, and has one more connection for its ledger.
  const needed = Math.max(connections, workers) + workers + BUILD_CONNECTIONS;
  if (free >= needed) return null;
  const options = `--connections ${connections}${workers === 1 ? "" : ` and --workers ${workers}`}`;
  return {
    kind: "advice",
    subject: "Connections",
    problem: `A server with ${options}, a build and a watch need ${needed} connections; PostgreSQL has ${Math.max(free, 0)} available.`,
    gain: "No request gets 503 because PostgreSQL refuses further connections.",
    remedy: `Raise max_connections (or the limit of the role or database), or lower --connections${workers === 1 ? "" : " or --workers"}.`,
    fix: null,
  };
}
