/** Opens PostgreSQL as a Database, through a pool of connections. */
import pg from "pg";
import {
  type Access,
  CHANNEL,
  type Database,
  type DatabaseOptions,
  type Query,
  type Row,
  type Session,
} from "../database.ts";
import {
  DatabaseFault,
  hasTooManyConnections,
  notBegunFault,
  withBeginFaults,
  withConnectFaults,
  withFaults,
} from "../fault.ts";
import { keepListening, type Listening } from "../listening.ts";
import { type AwaitTurn, cancelQuery, openCancellations } from "./cancel.ts";
import { begin, rollBack } from "./planning.ts";
import {
  CONNECT_TIMEOUT,
  closeInBackground,
  GRACE,
  isConnectionLost,
  KEEP_ALIVE,
  NO_LIMITS,
  openPool,
  type Pool,
} from "./pool.ts";
import { runStatement } from "./statement.ts";

/** Milliseconds within which a new connection gets an answer from an available database. */
const PROBE_TIMEOUT = 1_000;
/** Milliseconds between two checks of a listening connection, and for the answer to one. */
const HEARTBEAT = 5_000;
const HEARTBEAT_TIMEOUT = 3_000;

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
      }),
    execute: (script) => lend((client) => runScript(client, script)),
    transaction: (access, run) => lend((client) => transaction(client, access, run, prepared)),
    listen: (onChange) => keepListening(() => openListening(url, onChange), onChange),
    probe: () => probe(url, async () => connections().idle > 0 && lend(isAnswered)),
    renewConnections,
    connections,
    close,
  };
}

/** The signal that aborts a query, and the wait for its turn to be cancelled. */
type Abort = { readonly signal: AbortSignal; readonly awaitTurn: AwaitTurn };
type QueryLimits = {
  /** The time limit that the server applies, in milliseconds; null for none. */
  readonly limit: number | null;
  /** Null when the query cannot be aborted. */
  readonly abort: Abort | null;
};
const UNLIMITED: QueryLimits = { limit: null, abort: null };

async function runQuery(
  client: pg.PoolClient,
  query: Query,
  prepared: Pool["prepared"],
  { limit, abort }: QueryLimits = UNLIMITED,
): Promise<Row[]> {
  if (abort?.signal.aborted) throw notBegunFault();
  const asking = withFaults(() => runStatement(client, query, prepared), limit);
  return abort === null ? asking : cancellable(client, asking, abort);
}

async function runScript(client: pg.PoolClient, script: string): Promise<void> {
  await withFaults(() => client.query(script));
}

/** Cancels the query in the database when the signal aborts. */
function cancellable<T>(client: pg.PoolClient, asking: Promise<T>, { signal, awaitTurn }: Abort): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = () => void cancelled(client, asking, awaitTurn).catch(reject);
    signal.addEventListener("abort", cancel, { once: true });
    const settle = <R>(end: (result: R) => void) => {
      return (result: R) => {
        signal.removeEventListener("abort", cancel);
        // After an abort, `cancelled` decides the outcome, and the result of the query is dropped.
        if (!signal.aborted) end(result);
      };
    };
    asking.then(settle(resolve), settle(reject));
  });
}

/**
 * Cancels a query and throws the fault of an aborted one. Waits until both the query and its cancellation have ended: a
 * late cancellation would hit the next query of the connection. If that takes longer than GRACE, throws a fault that
 * makes the pool discard the connection.
 */
async function cancelled(client: pg.PoolClient, asking: Promise<unknown>, awaitTurn: AwaitTurn): Promise<never> {
  const ended = asking.then(
    () => null,
    (error: unknown) => error,
  );
  const ending = (await awaitTurn(ended)) ? [ended, cancelQuery(client, GRACE)] : [ended];
  const [error] = await withFaults(() => withDeadline(GRACE, Promise.all(ending)));
  if (isConnectionLost(error)) throw error;
  throw new DatabaseFault("timeout", "the query was cancelled");
}

async function withDeadline<T>(milliseconds: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("the query could not be cancelled")), milliseconds);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
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

async function isAnswered(client: pg.PoolClient): Promise<boolean> {
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

/** Opens a connection that listens. It is not one of the pool, which would lend it to others and close it when idle. */
async function openListening(url: string, onChange: () => void): Promise<Listening> {
  const client = new pg.Client({
    connectionString: url,
    application_name: "precast watch",
    connectionTimeoutMillis: CONNECT_TIMEOUT,
    query_timeout: HEARTBEAT_TIMEOUT,
    ...KEEP_ALIVE,
  });
  const ended = new Promise<void>((resolve) => client.once("end", resolve));
  client.on("error", () => {});
  client.on("notification", onChange);
  const close = () => closeInBackground(client);
  try {
    await withConnectFaults(() => client.connect());
    await withFaults(() => client.query(NO_LIMITS));
    await withFaults(() => client.query(`LISTEN ${CHANNEL}`));
  } catch (error) {
    close();
    throw error;
  }
  const heartbeat = setInterval(() => client.query("SELECT 1").catch(close), HEARTBEAT);
  return { ended: ended.finally(() => clearInterval(heartbeat)), close };
}
