/** PostgreSQL through a pool of connections: the one home of `pg`. */
import pg from "pg";
import {
  type Access,
  BEGIN,
  CHANNEL,
  type Database,
  type DatabaseOptions,
  type Query,
  type Row,
  type Session,
} from "./database.ts";
import { DatabaseFault, faultOf } from "./fault.ts";
import { keepListening, type Line } from "./listening.ts";

const CONNECT_TIMEOUT = 2_000;
/** How much longer than its own limit a server may take to say that it has cancelled a query. */
const GRACE = 1_000;
/** How often a connection that listens is asked whether it is still there, and how long it may take to say so. */
const HEARTBEAT = 5_000;
const HEARTBEAT_TIMEOUT = 3_000;
/** So that a connection whose other end has vanished fails, and is not waited for. */
const KEEP_ALIVE = { keepAlive: true, keepAliveInitialDelayMillis: 10_000 };
const asText = { getTypeParser: () => (value: unknown) => value } as unknown as pg.CustomTypesConfig;

export async function openPostgres(url: string, options: DatabaseOptions): Promise<Database> {
  const pool = new pg.Pool({
    connectionString: url,
    application_name: "precast",
    max: options.connections,
    connectionTimeoutMillis: CONNECT_TIMEOUT,
    types: asText,
    ...KEEP_ALIVE,
    ...(options.queryTimeout === null ? {} : timeLimits(options.queryTimeout)),
  });
  // A connection that breaks while it is idle is the pool's to replace; without a listener it would end the process.
  pool.on("error", () => {});
  return {
    kind: "postgres",
    ...sessionOf(async (run) => {
      const busy = pool.idleCount === 0 && pool.totalCount >= options.connections;
      if (busy && pool.waitingCount >= options.queue) {
        throw new DatabaseFault("overloaded", "too many queries wait for a connection");
      }
      return withClient(pool, run);
    }),
    transaction: (access, run) => withClient(pool, (client) => transaction(client, access, run)),
    listen: ({ heard }) => keepListening(() => openLine(url, heard), heard),
    close: () => pool.end(),
  };
}

/** The server cancels the query; a server that does not even do that is given up. */
function timeLimits(milliseconds: number): pg.PoolConfig {
  return { statement_timeout: milliseconds, query_timeout: milliseconds + GRACE };
}

function sessionOf(borrow: <T>(run: (client: pg.PoolClient) => Promise<T>) => Promise<T>): Session {
  return {
    query: (query) => borrow((client) => runQuery(client, query)),
    execute: (script) => borrow(async (client) => void (await answered(client.query(script)))),
  };
}

async function runQuery(client: pg.PoolClient, { text, values }: Query): Promise<Row[]> {
  const result = await answered(client.query({ text, values: values as unknown[], rowMode: "array" }));
  return result.rows as Row[];
}

/** What the client throws, as a fault where it is one. */
async function answered<T>(asking: Promise<T>): Promise<T> {
  try {
    return await asking;
  } catch (error) {
    throw faultOf(error);
  }
}

/** Lends one connection; one that failed in any way but by a plain SQL error is thrown away. */
async function withClient<T>(pool: pg.Pool, run: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await answered(pool.connect());
  const ignore = () => {};
  client.on("error", ignore);
  let broken = false;
  try {
    return await run(client);
  } catch (error) {
    broken = error instanceof DatabaseFault && error.reason === "unavailable";
    throw error;
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
  // The pool may lend a connection whose other end has vanished: nothing but that makes BEGIN take long.
  const begin = { text: BEGIN[access], query_timeout: CONNECT_TIMEOUT };
  await answered(client.query(begin));
  try {
    const result = await run(sessionOf((use) => use(client)));
    await answered(client.query("COMMIT"));
    return result;
  } catch (error) {
    await client.query("ROLLBACK").catch(() => {});
    throw error;
  }
}

/** A connection of its own: one that the pool lends would be lent to others, and closed when it is idle. */
async function openLine(url: string, heard: () => void): Promise<Line> {
  const client = new pg.Client({
    connectionString: url,
    application_name: "precast watch",
    connectionTimeoutMillis: CONNECT_TIMEOUT,
    query_timeout: HEARTBEAT_TIMEOUT,
    ...KEEP_ALIVE,
  });
  const ended = new Promise<void>((resolve) => client.once("end", resolve));
  client.on("error", () => {});
  client.on("notification", heard);
  const close = () => void client.end().catch(() => {});
  try {
    await answered(client.connect());
    await answered(client.query(`LISTEN ${CHANNEL}`));
  } catch (error) {
    close();
    throw error;
  }
  const heartbeat = setInterval(() => client.query("SELECT 1").catch(close), HEARTBEAT);
  return { ended: ended.finally(() => clearInterval(heartbeat)), close };
}
