/** PostgreSQL through a pool of connections: the one home of `pg`. */
import pg from "pg";
import {
  type Access,
  BEGIN,
  type Database,
  type DatabaseOptions,
  type Query,
  type Row,
  type Session,
} from "./database.ts";
import { DatabaseFault, faultOf } from "./fault.ts";

const CONNECT_TIMEOUT = 2_000;
const asText = { getTypeParser: () => (value: unknown) => value } as unknown as pg.CustomTypesConfig;

export async function openPostgres(url: string, options: DatabaseOptions): Promise<Database> {
  const pool = new pg.Pool({
    connectionString: url,
    application_name: "precast",
    max: options.connections,
    connectionTimeoutMillis: CONNECT_TIMEOUT,
    types: asText,
    ...(options.queryTimeout === null ? {} : { statement_timeout: options.queryTimeout }),
  });
  // A connection that breaks while it is idle is the pool's to replace; without a listener it would end the process.
  pool.on("error", () => {});
  return {
    kind: "postgres",
    ...sessionOf(async (run) => {
      if (pool.idleCount === 0 && pool.waitingCount >= options.queue) {
        throw new DatabaseFault("overloaded", "too many queries wait for a connection");
      }
      return withClient(pool, run);
    }),
    transaction: (access, run) => withClient(pool, (client) => transaction(client, access, run)),
    close: () => pool.end(),
  };
}

function sessionOf(borrow: <T>(run: (client: pg.PoolClient) => Promise<T>) => Promise<T>): Session {
  return {
    query: (query) => borrow((client) => runQuery(client, query)),
    execute: (script) => borrow(async (client) => void (await client.query(script))),
  };
}

async function runQuery(client: pg.PoolClient, { text, values }: Query): Promise<Row[]> {
  const result = await client.query({ text, values: values as unknown[], rowMode: "array" });
  return result.rows as Row[];
}

/** Lends one connection; one that failed in any way but by a plain SQL error is thrown away. */
async function withClient<T>(pool: pg.Pool, run: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  let client: pg.PoolClient;
  try {
    client = await pool.connect();
  } catch (error) {
    throw faultOf(error);
  }
  const ignore = () => {};
  client.on("error", ignore);
  let broken = false;
  try {
    return await run(client);
  } catch (error) {
    const fault = faultOf(error);
    broken = fault instanceof DatabaseFault && fault.reason === "unavailable";
    throw fault;
  } finally {
    client.off("error", ignore);
    client.release(broken);
  }
}

async function transaction<T>(
  client: pg.PoolClient,
  access: Access,
  run: (session: Session) => Promise<T>,
): Promise<T> {
  await client.query(BEGIN[access]);
  try {
    const result = await run(sessionOf((use) => use(client)));
    await client.query("COMMIT");
    return result;
  } catch (error) {
    await client.query("ROLLBACK").catch(() => {});
    throw error;
  }
}
