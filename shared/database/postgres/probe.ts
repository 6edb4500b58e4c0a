/** Checks whether PostgreSQL answers. */
import pg from "pg";
import { type DatabaseFault, hasTooManyConnections, withConnectFaults, withFaults } from "../fault.ts";
import { closeInBackground } from "./pool.ts";
import { CONNECT_TIMEOUT } from "./session.ts";

/** Milliseconds within which a new connection gets an answer from an available database. */
const PROBE_TIMEOUT = 1_000;

/**
 * Checks the database over a connection of its own: those of the pool may all be busy, and an answer on one of them
 * does not show that new ones are accepted. If a new one fails, an answer on an idle one of the pool is enough.
 */
export async function probe(url: string, askIdle: () => Promise<boolean>): Promise<void> {
  const isIdleAnswered = askIdle().catch(() => false);
  try {
    await askOnNewConnection(url);
  } catch (error) {
    if (!hasTooManyConnections(error as DatabaseFault) && !(await isIdleAnswered)) throw error;
  }
}

export async function isAnswered(client: pg.PoolClient): Promise<boolean> {
  const question = { text: "SELECT 1", query_timeout: CONNECT_TIMEOUT };
  await withFaults(() => client.query(question));
  return true;
}

async function askOnNewConnection(url: string): Promise<void> {
  const client = new pg.Client({
    connectionString: url,
    application_name: "precast probe",
    // The same limit as in the pool: with a shorter one, a distant database could be queried but never probed.
    connectionTimeoutMillis: CONNECT_TIMEOUT,
    query_timeout: PROBE_TIMEOUT,
  });
  client.on("error", () => {});
  try {
    await withConnectFaults(() => client.connect());
    await withFaults(() => client.query("SELECT 1"));
  } finally {
    closeInBackground(client);
  }
}
