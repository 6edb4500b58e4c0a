/** Pools the connections to PostgreSQL: lends each to one query or transaction at a time, and discards broken ones. */
import pg from "pg";
import type { Database, DatabaseOptions } from "../database.ts";
import {
  DatabaseFault,
  hasTooManyConnections,
  isConnectionLost,
  isReadOnly,
  notBegunFault,
  withConnectFaults,
} from "../errors.ts";
import { AS_TEXT, CONNECT_TIMEOUT, destroyLater, KEEP_ALIVE, sessionOptions } from "./session.ts";

type Pool = {
  /**
   * Runs `run` with a connection that it has to itself. Throws a DatabaseFault when none can be had, or none before the
   * signal aborts.
   */
  readonly lend: <T>(run: (client: pg.PoolClient) => Promise<T>, signal?: AbortSignal) => Promise<T>;
  /** Discards all connections made before this call, each when it would next be lent. */
  readonly renewConnections: () => void;
  readonly connections: Database["connections"];
  readonly close: () => Promise<void>;
};

export function openPool(url: string, { connections, queryTimeout }: DatabaseOptions): Pool {
  const pool = new pg.Pool({
    connectionString: url,
    application_name: "precast",
    max: connections,
    connectionTimeoutMillis: CONNECT_TIMEOUT,
    types: AS_TEXT,
    ...KEEP_ALIVE,
    ...sessionOptions(queryTimeout),
  });
  const open = new Set<pg.PoolClient>();
  const connectionLimit = openConnectionLimit(connections);
  /** The connections that may be lent: those made since the last `renewConnections`. */
  let trusted = new WeakSet<pg.PoolClient>();
  // A connection may break at any time, even before a borrower can add a listener, and an error without a listener ends
  // the process. The next query on the connection reports the error.
  pool.on("error", () => {});
  pool.on("connect", (client) => {
    trusted.add(client);
    open.add(client);
    connectionLimit.granted();
    client.once("end", () => open.delete(client));
    client.on("error", () => {});
  });

  function renewConnections(): void {
    trusted = new WeakSet();
  }

  /**
   * Takes a connection from the pool, or opens one. When the database has no slot for a new one, or a pooler accepts it
   * but does not answer, the limit of the pool is lowered and a connection that is in use is awaited, once.
   */
  async function find(isWaiting = false): Promise<pg.PoolClient> {
    pool.options.max = connectionLimit.poolSize(open.size);
    try {
      return await withConnectFaults(() => pool.connect());
    } catch (error) {
      const fault = error as DatabaseFault;
      const isSilent = fault.code === undefined;
      if (!hasTooManyConnections(fault) && !(isSilent && open.size > 0)) throw fault;
      connectionLimit.denied();
      if (isWaiting) throw new DatabaseFault("overloaded", fault.message, fault.cause);
      return find(true);
    }
  }

  async function borrow(): Promise<pg.PoolClient> {
    for (;;) {
      const client = await find();
      if (trusted.has(client)) return client;
      client.release(true);
    }
  }

  /** Lends one connection. If it turns out to be lost, no connection made until then is lent again. */
  const lend: Pool["lend"] = async (run, signal) => {
    const client = await (signal === undefined ? borrow() : unlessAborted(signal, borrow()));
    let broken = false;
    try {
      return await run(client);
    } catch (error) {
      broken = isConnectionLost(error);
      // Whatever ended this connection has probably ended the others, and idle ones may not have noticed yet.
      if (broken) renewConnections();
      // A new connection may be able to write: it gets changed settings, or reaches the server that has taken over.
      broken ||= isReadOnly(error);
      throw error;
    } finally {
      client.release(broken);
    }
  };

  const counts = () => ({ open: pool.totalCount, idle: pool.idleCount });
  const close = async () => {
    await pool.end();
    for (const client of open) destroyLater(client);
  };
  return { lend, renewConnections, connections: counts, close };
}

/** A pool for a library that brings its own queries, as the client of PostgreSQL makes it. */
export type PlainPool = pg.Pool;
export type PlainClient = pg.PoolClient;

/** Its queries take as long as they take. `name` is what the database shows of its connections. */
export function openPlainPool(url: string, connections: number, name: string): PlainPool {
  const pool = new pg.Pool({
    ...{ connectionString: url, application_name: name, max: connections },
    ...{ connectionTimeoutMillis: CONNECT_TIMEOUT, ...KEEP_ALIVE },
  });
  // An error without a listener ends the process; the next query on the connection reports it.
  pool.on("error", () => {});
  pool.on("connect", (client) => void client.on("error", () => {}));
  return pool;
}

/** Gives up waiting for a connection when the signal aborts. One that comes later goes back to the pool. */
function unlessAborted(signal: AbortSignal, borrowing: Promise<pg.PoolClient>): Promise<pg.PoolClient> {
  return new Promise((resolve, reject) => {
    const giveUp = () => {
      reject(notBegunFault());
      borrowing.then(
        (client) => client.release(),
        () => {},
      );
    };
    if (signal.aborted) return giveUp();
    signal.addEventListener("abort", giveUp, { once: true });
    borrowing.then(resolve, reject).finally(() => signal.removeEventListener("abort", giveUp));
  });
}

/** Adapts the size of a pool to the connections that the database allows, which may be fewer than the pool wants. */
type ConnectionLimit = {
  /** The maximum size of the pool, given the number of open connections. */
  readonly poolSize: (open: number) => number;
  /** Records that the database had no slot for another connection. */
  readonly denied: () => void;
  /** Records that the database has accepted a connection. */
  readonly granted: () => void;
};

/** Milliseconds after which the pool tries to open another connection when the database had no slot. */
const PAUSE = 1_000;

function openConnectionLimit(wanted: number): ConnectionLimit {
  let deniedAt: number | null = null;
  const isRecent = () => deniedAt !== null && performance.now() - deniedAt < PAUSE;

  return {
    poolSize: (open) => {
      if (deniedAt === null) return wanted;
      return Math.min(wanted, Math.max(1, isRecent() ? open : open + 1));
    },
    denied: () => {
      deniedAt = performance.now();
    },
    granted: () => {
      if (!isRecent()) deniedAt = null;
    },
  };
}
