/** The connections to PostgreSQL that queries share: lent to one at a time, and thrown away when they broke. */
import pg from "pg";
import type { Database, DatabaseOptions } from "../database.ts";
import { connected, DatabaseFault, hasNoSlot, isReadOnly } from "../fault.ts";
import { openPrepared, type Prepared } from "./prepared.ts";
import { openRoom } from "./room.ts";

export const CONNECT_TIMEOUT = 2_000;
/** How much longer than its own limit a server may take to say that it has cancelled a query. */
export const GRACE = 1_000;
/** So that a connection whose other end has vanished fails, and is not waited for. */
export const KEEP_ALIVE = { keepAlive: true, keepAliveInitialDelayMillis: 10_000 };

/** Every value comes as the text that the database sends. */
export const AS_TEXT = { getTypeParser: () => (value: unknown) => value } as unknown as pg.CustomTypesConfig;

export type Pool = {
  readonly lend: <T>(run: (client: pg.PoolClient) => Promise<T>) => Promise<T>;
  /** What its connections keep prepared. */
  readonly prepared: Prepared<pg.PoolClient>;
  /** Throws every connection away that was made before, each when it is next to be lent. */
  readonly renew: () => void;
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
    ...(queryTimeout === null ? patient() : live(queryTimeout)),
  });
  const prepared = openPrepared<pg.PoolClient>();
  const open = new Set<pg.PoolClient>();
  const room = openRoom(connections);
  /** Those that may be lent again. */
  let trusted = new WeakSet<pg.PoolClient>();
  // A connection may break in any moment, also before the next who borrows it can listen: without a listener it would end the
  // process. Whoever asks it something then hears of it.
  pool.on("error", () => {});
  pool.on("connect", (client) => {
    trusted.add(client);
    open.add(client);
    room.granted();
    client.once("end", () => open.delete(client));
    client.on("error", () => {});
  });

  function renew(): void {
    trusted = new WeakSet();
  }

  /**
   * Where the database has no slot for another, and where a pooler welcomes another and lets it wait, one of those that are lent is
   * waited for, once.
   */
  async function find(isWaiting = false): Promise<pg.PoolClient> {
    pool.options.max = room.most(open.size);
    try {
      return await connected(() => pool.connect());
    } catch (error) {
      const fault = error as DatabaseFault;
      const isSilent = fault.code === undefined;
      if (!hasNoSlot(fault) && !(isSilent && open.size > 0)) throw fault;
      room.denied();
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

  /** Lends one connection; one that is lost is thrown away, and those that were made before it are lent no more. */
  const lend: Pool["lend"] = async (run) => {
    const client = await borrow();
    let broken = false;
    try {
      return await run(client);
    } catch (error) {
      broken = isLost(error);
      // What has ended one has likely ended the others, and those that are idle may not have heard of it.
      if (broken) renew();
      // A new one may write: it learns of other settings, or comes to the server that has taken over.
      broken ||= isReadOnly(error);
      throw error;
    } finally {
      client.release(broken);
    }
  };

  const counts = () => ({ open: pool.totalCount, idle: pool.idleCount });
  const close = async () => {
    await pool.end();
    for (const client of open) cutInTime(client);
  };
  return { lend, prepared, renew, connections: counts, close };
}

/** Says goodbye. */
export function leave(client: pg.Client): void {
  client.end().catch(() => {});
  cutInTime(client);
}

/** A server that hangs answers no goodbye, and a process that waits for it does not end. */
function cutInTime(client: pg.ClientBase): void {
  const { connection } = client as unknown as { readonly connection: pg.Connection };
  setTimeout(() => connection.stream.destroy(), GRACE).unref();
}

/** A build may take hours, whatever the role's other programs are allowed. */
function patient(): pg.PoolConfig {
  return configured("SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0");
}

/**
 * The server cancels the query; a server that does not even do that is given up. To compile a plan takes longer than to answer
 * with it, and would be done for every query anew.
 */
function live(milliseconds: number): pg.PoolConfig {
  return {
    ...configured(`SET statement_timeout = ${milliseconds}; SET jit = off`),
    query_timeout: milliseconds + GRACE,
  };
}

/** What is read, and what SQL means, must not depend on what the role or the database is set to. A standby knows no other isolation. */
const PLAIN =
  "SET extra_float_digits = 1; SET standard_conforming_strings = on; SET default_transaction_isolation = 'read committed'";
/** Lifts limits that not every PostgreSQL has. */
export const NO_LIMITS =
  "SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('transaction_timeout', 'idle_session_timeout')";

/** Settings are sent when the connection is there: a pooler between takes none before. */
function configured(own: string): pg.PoolConfig {
  const onConnect = async (client: pg.ClientBase) => {
    // One after the other: what is sent at once is one transaction, under the isolation of before.
    for (const text of [`${PLAIN}; ${own}`, NO_LIMITS]) {
      const settings = { text, query_timeout: CONNECT_TIMEOUT };
      await client.query(settings);
    }
  };
  return { onConnect };
}

/** Whether the error says that the connection is of no more use: it comes from no server, or from one that ends. */
export function isLost(error: unknown): boolean {
  if (!(error instanceof DatabaseFault) || error.reason !== "unavailable") return false;
  const { severity, code } = (error.cause ?? {}) as { severity?: string; code?: string };
  return severity === undefined || severity === "FATAL" || /^(08|57P)/.test(code ?? "");
}
