/**
 * The queue of apps to publish, in PostgreSQL: which targets it serves, what waits, runs and fails in it. Triggers add the jobs
 * (shared/schema/0016_queue.sql, 0017_queue_keys.sql); graphile-worker, whose tables these are, hands them out.
 */
import { pause } from "../../shared/async.ts";
import type { Database, Session } from "../../shared/database/database.ts";
import type { PlainPool } from "../../shared/database/postgres/pool.ts";
import { sql } from "../../shared/sql/query.ts";
import { readRow, readRows } from "../database.ts";

/** What a target is known by in the queue, and what its trees are built with. */
export type Registration = { readonly id: number; readonly settings: string };

/** The names of a target's jobs: of all its apps, and of those that take long. */
export function nameTasks({ id }: Pick<Registration, "id">): { readonly usual: string; readonly large: string } {
  return { usual: `precast:${id}`, large: `precast:${id}:large` };
}

/** The key of the job of an app: while it waits, no other of the app does. */
export function nameJob({ id }: Pick<Registration, "id">, appKey: string): string {
  return `${id}:${appKey}`;
}

/** Only the owner of the schema may work: publications add jobs with its rights. */
class NotOwnerError extends Error {
  constructor(owner: string) {
    super(
      `Workers need the role that owns the schema precast, which is ${owner}: publications add jobs with its rights.`,
    );
    this.name = "NotOwnerError";
  }
}

/** Key of an advisory lock: an arbitrary number that other programs are unlikely to use. */
const INSTALLATION_LOCK = 7_232_280;

type RegisterOptions = {
  readonly database: Database;
  readonly pool: PlainPool;
  /** Its name. */
  readonly target: string;
  readonly settings: string;
  readonly say: (sentence: string) => void;
  readonly stop: AbortSignal;
};

/**
 * Installs the tables of the queue, registers the target and what its trees are built with, and adds a job for every app when
 * one of them is new. Null when it was stopped before that. Throws NotOwnerError.
 */
export async function registerTarget(options: RegisterOptions): Promise<Registration | null> {
  const { database, target, settings } = options;
  const [owner] = await database.query(
    sql(
      "SELECT pg_get_userbyid(nspowner), (pg_get_userbyid(nspowner) = current_user)::text FROM pg_namespace WHERE nspname = 'precast'",
    ),
  );
  if (owner?.[1] !== "true") throw new NotOwnerError(owner?.[0] ?? "unknown");
  await installQueue(options);
  await database.query(
    sql("INSERT INTO precast.targets (target, settings) VALUES ($1, $2) ON CONFLICT DO NOTHING", [target, ANNOUNCED]),
  );
  const isNew = (await findTarget(database, target))?.settings === ANNOUNCED;
  if (isNew && !(await untilAllKnow(options))) return null;
  return database.transaction("write", async (session) => {
    const [row] = await session.query(
      sql(
        `INSERT INTO precast.targets (target, settings) VALUES ($1, $2)
ON CONFLICT (target) DO UPDATE SET settings = excluded.settings, registered_at = now()
  WHERE precast.targets.settings <> excluded.settings
RETURNING id::text`,
        [target, settings],
      ),
    );
    const id = Number(row?.[0] ?? (await findTarget(session, target))?.id);
    if (row !== undefined) await addAll(session, id);
    return { id, settings };
  });
}

/** The settings of a target that publications add jobs for, while those of its apps are still to be added. */
const ANNOUNCED = "";

async function installQueue({ database, pool }: RegisterOptions): Promise<void> {
  // Loaded where it is needed: whoever looks at the queue does without.
  const { Logger, runMigrations } = await import("graphile-worker");
  await database.transaction("write", async (session) => {
    // The library fails where two processes install its tables at the same moment.
    await session.query(sql(`SELECT pg_advisory_xact_lock(${INSTALLATION_LOCK})::text`));
    if (!(await hasQueue(session))) await pool.query("UPDATE precast.targets SET settings = $1", [ANNOUNCED]);
    await runMigrations({ pgPool: pool, logger: new Logger(() => () => {}) });
  });
}

/** Milliseconds. */
const LOOK_INTERVAL = 100;

/**
 * Resolves when the transactions have ended that may not see a new target and add no job for it: their publications would be
 * missed. False when it was stopped meanwhile.
 */
async function untilAllKnow({ database, say, stop }: RegisterOptions): Promise<boolean> {
  const earlier = await findTransactions(database);
  for (let isTold = false; !stop.aborted; isTold = true) {
    const open = (await findTransactions(database)).filter(({ id }) => earlier.some((one) => one.id === id));
    if (open.length === 0) return true;
    const pids = open.map(({ pid }) => pid).join(", ");
    if (!isTold)
      say(`Waiting for transactions that began before the database knew this target (pg_stat_activity.pid: ${pids}).`);
    await pause(LOOK_INTERVAL, stop);
  }
  return false;
}

/** Those that are open in the database, of all clients. */
async function findTransactions(database: Database): Promise<{ readonly id: string; readonly pid: number }[]> {
  return readRows(
    database,
    `SELECT virtualtransaction AS id, pid FROM pg_locks AS lock JOIN pg_stat_activity AS client USING (pid)
WHERE locktype = 'virtualxid' AND datname = current_database() AND usename IS NOT NULL AND pid <> pg_backend_pid()`,
  );
}

/** Adds a job for each app of the database. */
async function addAll(session: Pick<Session, "query">, id: number): Promise<void> {
  await session.query(
    sql("SELECT precast.add_jobs(array_agg(key), $1::integer)::text FROM precast.apps HAVING count(*) > 0", [
      String(id),
    ]),
  );
}

export async function hasQueue(session: Pick<Session, "query">): Promise<boolean> {
  const [row] = await session.query(sql("SELECT (to_regclass('graphile_worker.jobs') IS NOT NULL)::text"));
  return row?.[0] === "true";
}

export async function findTarget(session: Pick<Session, "query">, target: string): Promise<Registration | null> {
  const [row] = await session.query(sql("SELECT id::text, settings FROM precast.targets WHERE target = $1", [target]));
  return row === undefined ? null : { id: Number(row[0]), settings: row[1] ?? "" };
}

// What is in the queue.

type JobState = "waiting" | "running" | "failed";

export type QueuedApp = {
  readonly app: string;
  readonly target: string;
  readonly state: JobState;
  /** Whether it waits for, or is in, the lane of large apps. */
  readonly large: boolean;
  /** When the oldest publication that is not visible yet was made, ISO 8601 in UTC. */
  readonly since: string;
  /** How often it was tried. */
  readonly attempts: number;
  /** When it is tried again, or for the first time; null while it runs. */
  readonly next: string | null;
  readonly error: string | null;
};

/**
 * A job that another one has replaced while it ran loses its key; while it runs, that other one waits. The key of a job that
 * could not join another of its app ends in the number of its transaction.
 */
const JOBS = `SELECT job.id, job.key, job.task_identifier, job.created_at, job.attempts, job.run_at, job.last_error, job.locked_at,
  target.target, split_part(job.key, ':', 2) AS app,
  CASE WHEN job.locked_at IS NOT NULL THEN 'running' WHEN job.last_error IS NOT NULL THEN 'failed' ELSE 'waiting' END AS state
FROM graphile_worker.jobs AS job
JOIN precast.targets AS target ON job.task_identifier IN ('precast:' || target.id, 'precast:' || target.id || ':large')
WHERE job.key IS NOT NULL`;

const iso = (column: string) => `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

/** Failed ones first, then by age. No more than `most`. */
export async function readQueue(session: Pick<Session, "query">, most: number): Promise<QueuedApp[]> {
  return readRows<QueuedApp>(
    session,
    `SELECT app, target, state, task_identifier LIKE '%:large' AS large, ${iso("created_at")} AS since, attempts,
  CASE WHEN locked_at IS NULL THEN ${iso("run_at")} END AS next, last_error AS error
FROM (${JOBS}) AS job ORDER BY state <> 'failed', created_at, app LIMIT ${most}`,
  );
}

export type QueueCounts = {
  readonly waiting: number;
  readonly running: number;
  readonly failed: number;
  /** Seconds since the oldest publication that is not visible yet; null when all are. */
  readonly oldest: number | null;
};

export async function countQueue(session: Pick<Session, "query">): Promise<QueueCounts> {
  return readRow<QueueCounts>(
    session,
    `SELECT count(*) FILTER (WHERE state = 'waiting') AS waiting, count(*) FILTER (WHERE state = 'running') AS running,
  count(*) FILTER (WHERE state = 'failed') AS failed, extract(epoch FROM now() - min(created_at))::float8 AS oldest
FROM (${JOBS}) AS job`,
  );
}

/** Runs the jobs of these apps now, or of all apps that wait or have failed; adds one for an app that has none. */
export async function retryApps(database: Database, apps: readonly string[] | null): Promise<number> {
  return database.transaction("write", async (session) => {
    if (apps !== null) await session.query(sql("SELECT precast.add_jobs($1::text[])::text", [apps]));
    return reschedule(session, apps);
  });
}

async function reschedule(session: Session, apps: readonly string[] | null): Promise<number> {
  const [row] = await session.query(
    sql(
      `WITH moved AS MATERIALIZED (
  SELECT id FROM graphile_worker.reschedule_jobs((
    SELECT array_agg(id) FROM (${JOBS}) AS job WHERE state <> 'running' AND ($1::text[] IS NULL OR app = ANY ($1))),
    run_at => now(), attempts => 0))
SELECT count(*)::text, pg_notify('jobs:insert', '{"count":64}')::text FROM moved`,
      [apps],
    ),
  );
  return Number(row?.[0] ?? 0);
}

/** Removes the jobs of these apps, or of all; one that runs is not tried again. */
export async function dropApps(database: Database, apps: readonly string[] | null): Promise<number> {
  const [row] = await database.query(
    sql(
      `SELECT count(graphile_worker.remove_job(key))::text FROM (${JOBS}) AS job WHERE $1::text[] IS NULL OR app = ANY ($1)`,
      [apps],
    ),
  );
  return Number(row?.[0] ?? 0);
}

/** Forgets a target: publications add no jobs for it any more, and what waits is removed. */
export async function dropTarget(database: Database, target: string): Promise<boolean> {
  return database.transaction("write", async (session) => {
    const found = await findTarget(session, target);
    if (found === null) return false;
    const { usual, large } = nameTasks(found);
    await session.query(
      sql(
        `SELECT count(graphile_worker.remove_job(key))::text FROM graphile_worker.jobs
WHERE key IS NOT NULL AND task_identifier IN ($1, $2)`,
        [usual, large],
      ),
    );
    await session.query(sql("DELETE FROM precast.targets WHERE id = $1::integer", [String(found.id)]));
    return true;
  });
}
