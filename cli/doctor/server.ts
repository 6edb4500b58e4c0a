/** Checks the PostgreSQL server: its settings, what keeps VACUUM from removing rows, and replication. */
import { formatBytes, formatCount, formatCounted } from "../../shared/text.ts";
import { readRow, readRows } from "../database.ts";
import { type CheckContext, defineCheck, type Found } from "./check.ts";

// Finds settings of the PostgreSQL server that slow Precast down or leave it too few connections.

type ServerFacts = {
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
  judge: (facts) => (facts === null ? [] : [memoryFinding(facts), vacuumFinding(facts), connectionsFinding(facts)]),
});

/**
 * Null for the embedded database, which has one connection and fixed settings. A role without `pg_read_all_stats` does
 * not see the `backend_type` of other roles' connections; those that have a role and a database count as clients then.
 */
async function readServer({ database, connections, workers }: CheckContext): Promise<ServerFacts | null> {
  if (database.kind === "embedded") return null;
  const facts = await readRow<Omit<ServerFacts, "connections" | "workers">>(
    database,
    `SELECT (SELECT setting::bigint * current_setting('block_size')::bigint FROM pg_settings WHERE name = 'shared_buffers') AS buffers,
  pg_database_size(current_database()) AS bytes,
  current_setting('autovacuum')::boolean AND current_setting('track_counts')::boolean AS autovacuum,
  least(
    (SELECT sum(CASE name WHEN 'max_connections' THEN setting::int ELSE -setting::int END) FROM pg_settings
     WHERE name IN ('max_connections', 'superuser_reserved_connections', 'reserved_connections'))
    - (SELECT count(*) FROM pg_stat_activity WHERE coalesce(backend_type = 'client backend', usesysid IS NOT NULL AND datid IS NOT NULL)
       AND (datname IS DISTINCT FROM current_database() OR application_name NOT LIKE 'precast%')),
    (SELECT nullif(rolconnlimit, -1) FROM pg_roles WHERE rolname = current_user AND NOT rolsuper),
    (SELECT nullif(datconnlimit, -1) FROM pg_database, pg_roles
     WHERE datname = current_database() AND rolname = current_user AND NOT rolsuper)) AS free`,
  );
  return { ...facts, connections, workers };
}

/** Bytes of shared_buffers that PostgreSQL has by default. */
const DEFAULT_BUFFERS = 128 * 1024 * 1024;
const BUFFERS_FACTOR = 8;

function memoryFinding({ buffers, bytes }: ServerFacts): Found | null {
  if (buffers > DEFAULT_BUFFERS || bytes < buffers * BUFFERS_FACTOR) return null;
  return {
    subject: "shared_buffers",
    problem: `The size of the database is ${formatBytes(bytes)}, but shared_buffers is ${formatBytes(buffers)}, no more than PostgreSQL's default.`,
    gain: "Live queries read more pages from memory.",
    remedy: "Set shared_buffers to a quarter of the machine's memory, and restart PostgreSQL.",
  };
}

function vacuumFinding({ autovacuum }: ServerFacts): Found | null {
  if (autovacuum) return null;
  return {
    subject: "autovacuum",
    problem:
      "It is switched off (autovacuum or track_counts is off): PostgreSQL neither updates statistics nor removes dead rows by itself.",
    gain: "Live queries stay fast. Without autovacuum, counts alone become ten times slower.",
    remedy: "Set autovacuum and track_counts to on, and reload the configuration of PostgreSQL.",
  };
}

/** Connections of a build and a watch. */
const BUILD_CONNECTIONS = 5;

function connectionsFinding({ free, connections, workers }: ServerFacts): Found | null {
  // Each worker may run at least one live query, and has one more connection for its ledger.
  const needed = Math.max(connections, workers) + workers + BUILD_CONNECTIONS;
  if (free >= needed) return null;
  const options = `--connections ${connections}${workers === 1 ? "" : ` and --workers ${workers}`}`;
  return {
    subject: "Connections",
    problem: `A server with ${options}, a build and a watch need ${needed} connections; PostgreSQL has ${Math.max(free, 0)} available.`,
    gain: "No request gets 503 because PostgreSQL refuses further connections.",
    remedy: `Raise max_connections (or the limit of the role or database), or lower --connections${workers === 1 ? "" : " or --workers"}.`,
  };
}

// Finds what keeps VACUUM from removing dead rows: transactions that stay open, and prepared transactions.

/** `minutes` is how long it has been open; null when it is another role's and the current role may not see that. */
type OpenTransaction = { readonly what: string; readonly endStatement: string; readonly minutes: number | null };

export const snapshotsCheck = defineCheck({
  name: "snapshots",
  gather: readOpenTransactions,
  judge: (transactions) => [...transactions.map(describeTransaction), findHidden(transactions)],
});

/** Minutes. A build of a million entries takes less. */
const LONG_MINUTES = 30;

/**
 * `endStatement` ends the transaction. Leaves out VACUUM, whose snapshot keeps no dead rows, and
 * background processes of the server (those without a role), which end by themselves.
 */
function readOpenTransactions({ database }: CheckContext): Promise<OpenTransaction[]> {
  return readRows(
    database,
    `SELECT format('A transaction of %s (process %s, %s)', coalesce(nullif(application_name, ''), usename), pid, state) AS what,
  format('SELECT pg_terminate_backend(%s)', pid) AS "endStatement", extract(epoch FROM now() - xact_start) / 60 AS minutes
FROM pg_stat_activity WHERE datname = current_database() AND backend_xmin IS NOT NULL AND pid <> pg_backend_pid()
  AND usesysid IS NOT NULL AND pid NOT IN (SELECT pid FROM pg_stat_progress_vacuum)
UNION ALL
SELECT format('The prepared transaction %L', gid), format('ROLLBACK PREPARED %L', gid), extract(epoch FROM now() - prepared) / 60
FROM pg_prepared_xacts WHERE database = current_database()`,
  );
}

function describeTransaction({ what, endStatement, minutes }: OpenTransaction): Found | null {
  if (minutes === null || minutes < LONG_MINUTES) return null;
  return {
    subject: "Long-running transaction",
    problem: `${what} has been open for ${Math.floor(minutes)} minutes: VACUUM cannot remove rows that have died since.`,
    gain: "VACUUM can remove dead rows, and counts stay fast.",
    remedy: `Find out why it is still open, and end it: ${endStatement}.`,
  };
}

function findHidden(transactions: readonly OpenTransaction[]): Found | null {
  const hidden = transactions.filter(({ minutes }) => minutes === null).length;
  if (hidden === 0) return null;
  return {
    kind: "information",
    subject: "Transactions of other roles",
    problem: `${formatCounted(hidden, "transaction")} of other roles may have been open for a second or for days: the role of --database-url lacks the right to see their age.`,
    gain: "Long-running transactions are reported, with the statement that ends each.",
    remedy: "GRANT pg_read_all_stats to the role, or run `precast doctor` with a role that has it.",
  };
}

// Finds replication slots without a reader, which fill the disk, and replicas that keep VACUUM from removing dead
// rows.

type ReplicationSlot = {
  readonly name: string;
  /** The statement that drops it. */
  readonly dropStatement: string;
  readonly isRead: boolean;
  /** Bytes of WAL that the server must keep for its reader. */
  readonly walBytes: number;
  /** Number of transactions since the oldest one whose dead rows it keeps; 0 when it keeps none. */
  readonly transactions: number;
};

/** A replica without a slot that reports what its queries read (`hot_standby_feedback`). */
type Standby = Pick<ReplicationSlot, "name" | "transactions">;

type ReplicationFacts = { readonly slots: readonly ReplicationSlot[]; readonly standbys: readonly Standby[] };

export const replicationCheck = defineCheck<ReplicationFacts>({
  name: "replication",
  gather: readReplication,
  judge: ({ slots, standbys }) => [
    ...slots.filter(({ isRead }) => !isRead).map(findUnread),
    ...slots.filter(({ isRead }) => isRead).map(findHeld),
    ...standbys.map(findHeld),
  ],
});

/** A replica that is started again reads less than this before it has caught up. */
const MUCH_WAL = 1_000_000_000;
/** A query that keeps the dead rows of so many transactions is no live query, which has seconds. */
const MANY_TRANSACTIONS = 100_000;

async function readReplication({ database }: CheckContext): Promise<ReplicationFacts> {
  const slots = await readRows<ReplicationSlot>(
    database,
    `SELECT slot_name AS name, format('SELECT pg_drop_replication_slot(%L)', slot_name) AS "dropStatement", active AS "isRead",
  coalesce(pg_wal_lsn_diff(
    CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END, restart_lsn), 0) AS "walBytes",
  coalesce(age(xmin), 0) AS transactions
FROM pg_replication_slots ORDER BY slot_name`,
  );
  const standbys = await readRows<Standby>(
    database,
    `SELECT coalesce(nullif(application_name, ''), host(client_addr), pid::text) AS name, age(backend_xmin) AS transactions
FROM pg_stat_replication WHERE backend_xmin IS NOT NULL ORDER BY pid`,
  );
  return { slots, standbys };
}

function findUnread({ name, dropStatement, walBytes, transactions }: ReplicationSlot): Found | null {
  const kept = [
    ...(walBytes < MUCH_WAL ? [] : [`${formatBytes(walBytes)} of WAL`]),
    ...(transactions < MANY_TRANSACTIONS ? [] : [deadRows(transactions)]),
  ];
  if (kept.length === 0) return null;
  return {
    subject: `Replication slot ${name}`,
    problem: `Nobody reads it, and PostgreSQL keeps ${kept.join(" and ")} for its reader, more with every write.`,
    gain: "The disk does not fill up, and VACUUM can remove dead rows.",
    remedy: `Start its reader again, or drop it if there is none any more: ${dropStatement}.`,
  };
}

function findHeld({ name, transactions }: Standby): Found | null {
  if (transactions < MANY_TRANSACTIONS) return null;
  return {
    subject: `Replica ${name}`,
    problem: `A query on it keeps ${deadRows(transactions)} here, because the replica has hot_standby_feedback on.`,
    gain: "VACUUM can remove dead rows, and counts stay fast.",
    remedy: "Find the query in pg_stat_activity of the replica, and end it, or switch hot_standby_feedback off there.",
  };
}

function deadRows(transactions: number): string {
  return `the rows that died in the last ${formatCount(transactions)} transactions`;
}
