/** PostgreSQL as a Database: queries and transactions over a pool, and connections of their own to listen and to probe. */
import pg from "pg";
import { pause } from "../../async.ts";
import {
  type Access,
  CHANNEL,
  type Database,
  type DatabaseOptions,
  keepListening,
  type Listening,
  type Session,
} from "../database.ts";
import {
  type DatabaseFault,
  hasTooManyConnections,
  SESSION_POOLING,
  withBeginFaults,
  withConnectFaults,
  withFaults,
} from "../errors.ts";
import { openPool } from "./pool.ts";
import { openCancellations, openPrepared, type Prepared, runQuery } from "./query.ts";
import { begin, CONNECT_TIMEOUT, closeInBackground, KEEP_ALIVE, NO_LIMITS, rollBack, runQuick } from "./session.ts";

export async function openPostgres(url: string, options: DatabaseOptions): Promise<Database> {
  const { lend, renewConnections, connections, close } = openPool(url, options);
  const prepared = openPrepared();
  const awaitTurn = openCancellations();
  return {
    kind: "postgres",
    query: (query, signal) => {
      const limits = { limit: options.queryTimeout, signal, awaitTurn };
      return lend((client) => runQuery(client, query, prepared, limits), signal);
    },
    execute: (script) => lend((client) => runScript(client, script)),
    transaction: (access, run) => lend((client) => transaction(client, access, run, prepared)),
    listen: (onChange, channel = CHANNEL) => {
      // Classified before the connection is given back: a silent one must not be lent again.
      const announce = (text: string) =>
        lend((client) => withFaults(() => runQuick(client, `NOTIFY ${channel}, '${text}'`)));
      return keepListening(() => openListening(url, channel, onChange, announce), onChange);
    },
    probe: () => probe(url, async () => connections().idle > 0 && lend(isAnswered)),
    renewConnections,
    connections,
    close,
  };
}

async function runScript(client: pg.ClientBase, script: string): Promise<void> {
  await withFaults(() => client.query(script));
}

async function transaction<T>(
  client: pg.ClientBase,
  access: Access,
  run: (session: Session) => Promise<T>,
  prepared: Prepared,
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

/** Milliseconds between two checks of a listening connection, and for the answer to one. */
const HEARTBEAT = 5_000;
const HEARTBEAT_TIMEOUT = 3_000;

/**
 * Opens a connection that listens. It is not one of the pool, which would lend it to others and close it when idle.
 * `announce` sends a text over another connection: what is said there must be heard here.
 */
async function openListening(
  url: string,
  channel: string,
  onChange: () => void,
  announce: (text: string) => Promise<void>,
): Promise<Listening> {
  const client = new pg.Client({
    connectionString: url,
    application_name: "precast watch",
    connectionTimeoutMillis: CONNECT_TIMEOUT,
    query_timeout: HEARTBEAT_TIMEOUT,
    ...KEEP_ALIVE,
  });
  const ended = new Promise<void>((resolve) => client.once("end", resolve));
  client.on("error", () => {});
  client.on("notification", ({ payload }) => {
    // The triggers send no text: one with a text is how some connection finds out that it is heard.
    if (!payload) onChange();
  });
  const close = () => closeInBackground(client);
  try {
    await withConnectFaults(() => client.connect());
    await withFaults(() => client.query(NO_LIMITS));
    await withFaults(() => client.query(`LISTEN ${channel}`));
    await expectToHear(client, announce);
  } catch (error) {
    close();
    throw error;
  }
  const heartbeat = setInterval(() => client.query("SELECT 1").catch(close), HEARTBEAT);
  return { ended: ended.finally(() => clearInterval(heartbeat)), close };
}

let announced = 0;

/** A pooler with transaction pooling answers LISTEN, and then passes on no notification: without this, in silence. */
async function expectToHear(client: pg.Client, announce: (text: string) => Promise<void>): Promise<void> {
  const text = `${process.pid}-${++announced}`;
  const heard = new AbortController();
  client.on("notification", ({ payload }) => {
    if (payload === text) heard.abort();
  });
  await announce(text);
  await pause(HEARTBEAT_TIMEOUT, heard.signal);
  if (heard.signal.aborted) return;
  // A connection that was lost meanwhile is another matter.
  await withFaults(() => client.query("SELECT 1"));
  throw new Error(`the database does not announce changes on this connection: ${SESSION_POOLING}`);
}

/** Milliseconds within which a new connection gets an answer from an available database. */
const PROBE_TIMEOUT = 1_000;

/**
 * Checks the database over a connection of its own: those of the pool may all be busy, and an answer on one of them
 * does not show that new ones are accepted. If a new one fails, an answer on an idle one of the pool is enough.
 */
async function probe(url: string, askIdle: () => Promise<boolean>): Promise<void> {
  const isIdleAnswered = askIdle().catch(() => false);
  try {
    await askOnNewConnection(url);
  } catch (error) {
    if (!hasTooManyConnections(error as DatabaseFault) && !(await isIdleAnswered)) throw error;
  }
}

async function isAnswered(client: pg.ClientBase): Promise<boolean> {
  await withFaults(() => runQuick(client, "SELECT 1"));
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
