/** Opens PostgreSQL as a Database, through a pool of connections. */
import type pg from "pg";
import type { Access, Database, DatabaseOptions, Session } from "../database.ts";
import { withBeginFaults, withFaults } from "../fault.ts";
import { keepListening } from "../listening.ts";
import { openCancellations } from "./cancel.ts";
import { openListening } from "./listening.ts";
import { begin, rollBack } from "./planning.ts";
import { openPool, type Pool } from "./pool.ts";
import { isAnswered, probe } from "./probe.ts";
import { runQuery } from "./query.ts";

export async function openPostgres(url: string, options: DatabaseOptions): Promise<Database> {
  const limit = options.queryTimeout;
  const { lend, prepared, renewConnections, connections, close } = openPool(url, options);
  const awaitTurn = openCancellations();
  return {
    kind: "postgres",
    query: (query, signal) =>
      lend((client) => {
        const abort = signal === undefined ? null : { signal, awaitTurn };
        return runQuery(client, query, prepared, { limit, abort });
      }, signal),
    execute: (script) => lend((client) => runScript(client, script)),
    transaction: (access, run) => lend((client) => transaction(client, access, run, prepared)),
    listen: (onChange) => keepListening(() => openListening(url, onChange), onChange),
    probe: () => probe(url, async () => connections().idle > 0 && lend(isAnswered)),
    renewConnections,
    connections,
    close,
  };
}

async function runScript(client: pg.PoolClient, script: string): Promise<void> {
  await withFaults(() => client.query(script));
}

async function transaction<T>(
  client: pg.PoolClient,
  access: Access,
  run: (session: Session) => Promise<T>,
  prepared: Pool["prepared"],
): Promise<T> {
  await withBeginFaults(() => begin(client, access));
  try {
    const result = await run({
      query: (query) => runQuery(client, query, prepared),
      execute: (script) => runScript(client, script),
    });
    await withFaults(() => client.query("COMMIT"));
    return result;
  } catch (error) {
    await rollBack(client).catch(() => {});
    throw error;
  }
}
