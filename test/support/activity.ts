/** Observes what the server runs in a database (pg_stat_activity), and holds a lock that makes live queries wait. */
import { Client } from "pg";
import { until } from "./until.ts";

export type Activity = {
  /** Locks these tables until `unlock`. Every live query reads one of the default tables. */
  readonly lock: (tables?: string) => Promise<void>;
  readonly unlock: () => Promise<void>;
  /** The number of the server's queries that are running. */
  readonly running: () => Promise<number>;
  /** Resolves when exactly `count` queries are running. */
  readonly runs: (count: number) => Promise<void>;
  /** Cancels running queries until none is left: a cancellation between two messages of a query has no effect. */
  readonly cancel: () => Promise<void>;
  /** The number of the server's connections. */
  readonly connections: () => Promise<number>;
  readonly query: (text: string) => Promise<readonly Record<string, unknown>[]>;
  readonly close: () => Promise<void>;
};

const OURS = "application_name = 'precast' AND datname = current_database()";

export async function openActivity(url: string): Promise<Activity> {
  const [holder, observer] = [new Client({ connectionString: url }), new Client({ connectionString: url })];
  await Promise.all([holder.connect(), observer.connect()]);
  const query = async (text: string) => (await observer.query(text)).rows;
  const count = async (condition: string) =>
    Number((await query(`SELECT count(*) FROM pg_stat_activity WHERE ${OURS} AND ${condition}`))[0]?.count);
  // The statements with which a new connection sets itself up do not count.
  const running = () => count("state = 'active' AND query !~ '^(SET|SELECT set_config)'");
  return {
    lock: async (tables = "precast.entries, precast.entry_counts") => {
      await holder.query(`BEGIN; LOCK TABLE ${tables} IN ACCESS EXCLUSIVE MODE`);
    },
    unlock: async () => void (await holder.query("ROLLBACK")),
    running,
    runs: (wanted) => until(`${wanted} queries to run`, async () => (await running()) === wanted),
    cancel: () =>
      until("all to be cancelled", async () => {
        const told = await query(
          `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE ${OURS} AND state = 'active'`,
        );
        return told.length === 0;
      }),
    connections: () => count("true"),
    query,
    close: async () => void (await Promise.all([holder.end(), observer.end()])),
  };
}
