/** Settings of the PostgreSQL server that are in the way of Precast. */
import { sql } from "../../../shared/database/database.ts";
import { formatBytes } from "../../terminal/format.ts";
import { defineCheck, type Patient } from "../check.ts";
import type { Finding } from "../finding.ts";

type Facts = {
  readonly buffers: number;
  readonly bytes: number;
  readonly autovacuum: boolean;
  /** Connections that Precast may have, whatever others have now. */
  readonly free: number;
  /** Live queries at once that it is to have. */
  readonly connections: number;
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
 * The embedded database has one connection, and settings that nobody chooses. What the connections of other roles are is hidden from
 * those without `pg_read_all_stats`: then clients are those that have a role and a database.
 */
async function readServer({ database, connections }: Patient): Promise<Facts | null> {
  if (database.kind === "embedded") return null;
  const [row] = await database.query(
    sql(`SELECT (SELECT setting::bigint * current_setting('block_size')::bigint FROM pg_settings WHERE name = 'shared_buffers')::text,
  pg_database_size(current_database())::text,
  (current_setting('autovacuum')::boolean AND current_setting('track_counts')::boolean)::text,
  least(
    (SELECT sum(CASE name WHEN 'max_connections' THEN setting::int ELSE -setting::int END) FROM pg_settings
     WHERE name IN ('max_connections', 'superuser_reserved_connections', 'reserved_connections'))
    - (SELECT count(*) FROM pg_stat_activity WHERE coalesce(backend_type = 'client backend', usesysid IS NOT NULL AND datid IS NOT NULL)
       AND application_name NOT LIKE 'precast%'),
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
  };
}

/** What a server has that nobody has set up. */
const DEFAULT_BUFFERS = 128 * 1024 * 1024;
const TIMES = 8;

function memoryFinding({ buffers, bytes }: Facts): Finding | null {
  if (buffers > DEFAULT_BUFFERS || bytes < buffers * TIMES) return null;
  return {
    kind: "advice",
    subject: "shared_buffers",
    problem: `The database has ${formatBytes(bytes)}, and the server ${formatBytes(buffers)} of memory for pages, as if nobody had set it up.`,
    gain: "Live queries read pages from memory.",
    remedy: "Set shared_buffers to a quarter of the machine's memory, and start PostgreSQL anew.",
    fix: null,
  };
}

function vacuumFinding({ autovacuum }: Facts): Finding | null {
  if (autovacuum) return null;
  return {
    kind: "advice",
    subject: "autovacuum",
    problem: "It is switched off (autovacuum or track_counts): nobody makes statistics, or clears dead rows away.",
    gain: "Live queries stay as fast as they are: counts alone become ten times slower without.",
    remedy: "Set autovacuum and track_counts to on, and have PostgreSQL read its settings again.",
    fix: null,
  };
}

/** The ledger of a server has one of its own; build and watch have five. */
const BESIDE = 6;

function connectionsFinding({ free, connections }: Facts): Finding | null {
  const needed = connections + BESIDE;
  if (free >= needed) return null;
  return {
    kind: "advice",
    subject: "Connections",
    problem: `A server with --connections ${connections}, a build and a watch need ${needed} connections; PostgreSQL has ${Math.max(free, 0)} for them.`,
    gain: "No request is 503 because PostgreSQL takes no more connections.",
    remedy: "Raise max_connections (or the limit of the role or database), or lower --connections.",
    fix: null,
  };
}
