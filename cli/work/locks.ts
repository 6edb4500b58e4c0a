/**
 * Who works on what, by advisory locks of one connection of the process: PostgreSQL frees them when the process dies or its
 * connection breaks. No two processes have the lock of one app, and the jobs of workers that hold no lock any more are freed.
 */
import type { PlainClient, PlainPool } from "../../shared/database/postgres/pool.ts";

export type Locks = {
  /** False when another process has it, or this one. Throws when the database is away. */
  readonly take: (name: string) => Promise<boolean>;
  /** Takes one that nobody else wants, now or as soon as the database is there. */
  readonly keep: (name: string) => void;
  readonly release: (name: string) => Promise<void>;
  /** Takes again what a broken connection has lost. To be called regularly. */
  readonly renew: () => Promise<void>;
  readonly close: () => Promise<void>;
};

/** The second argument of `hashtextextended`: an arbitrary number that other programs are unlikely to use. */
const SEED = 7_232_278;

export function openLocks(pool: PlainPool): Locks {
  /** A lock of a session can be taken twice by it, so the process has to know its own. */
  const held = new Set<string>();
  let client: PlainClient | null = null;
  /** The client runs one query at a time. */
  let last: Promise<unknown> = Promise.resolve();

  async function connect(): Promise<PlainClient> {
    if (client !== null) return client;
    const fresh = await pool.connect();
    const lose = () => {
      if (client !== fresh) return;
      client = null;
      // The pool counts it until then, and would have one connection less after each restart of the database.
      fresh.release(true);
    };
    fresh.once("error", lose);
    fresh.once("end", lose);
    client = fresh;
    for (const name of held) await lock(fresh, name);
    return fresh;
  }
  const inTurn = <T>(act: () => Promise<T>): Promise<T> => {
    const done = last.then(act, act);
    last = done.catch(() => {});
    return done;
  };

  return {
    take: (name) =>
      inTurn(async () => {
        if (held.has(name)) return false;
        const isTaken = await lock(await connect(), name);
        if (isTaken) held.add(name);
        return isTaken;
      }),
    keep: (name) => {
      const take = async () => {
        const isConnected = client !== null;
        held.add(name);
        const open = await connect();
        // A new connection has taken it with the others. What is taken twice would have to be released twice.
        if (isConnected) await lock(open, name);
      };
      void inTurn(take).catch(() => {});
    },
    release: (name) =>
      inTurn(async () => {
        held.delete(name);
        // With the connection, the lock is gone as well.
        await client?.query("SELECT pg_advisory_unlock(hashtextextended($1, $2))", [name, SEED]).catch(() => {});
      }),
    renew: () => inTurn(async () => void (await (await connect()).query("SELECT 1"))),
    close: () =>
      inTurn(async () => {
        const last = client;
        client = null;
        last?.release(true);
      }),
  };
}

async function lock(client: PlainClient, name: string): Promise<boolean> {
  const { rows } = await client.query<{ is_taken: boolean }>(
    "SELECT pg_try_advisory_lock(hashtextextended($1, $2)) AS is_taken",
    [name, SEED],
  );
  return rows[0]?.is_taken === true;
}

/** Seconds after which a worker that has taken a job holds its own lock for certain, if it lives. */
const GRACE = 2;

/** Frees the jobs of workers that hold no lock under their own name, so that others take them. Returns their number. */
export async function freeDeadJobs(pool: PlainPool): Promise<number> {
  const { rows } = await pool.query<{ freed: string }>(
    `WITH dead AS (
  SELECT locked_by AS worker, count(*) AS jobs FROM graphile_worker.jobs
  WHERE locked_at < now() - make_interval(secs => ${GRACE}) AND NOT EXISTS (
    SELECT FROM pg_locks AS lock
    WHERE lock.locktype = 'advisory' AND lock.granted AND lock.objsubid = 1
      AND lock.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND ((lock.classid::bigint << 32) | lock.objid::bigint) = hashtextextended(locked_by, ${SEED}))
  GROUP BY locked_by)
SELECT sum(jobs)::text AS freed, graphile_worker.force_unlock_workers(array_agg(worker))::text,
  pg_notify('jobs:insert', json_build_object('count', sum(jobs))::text)::text
FROM dead HAVING count(*) > 0`,
  );
  return Number(rows[0]?.freed ?? 0);
}
