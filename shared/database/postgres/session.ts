/** The settings of a PostgreSQL session: those that answers depend on, and the limits of its queries. */
import type pg from "pg";

/** Milliseconds for connecting, and for statements that are slow only when the connection is dead. */
export const CONNECT_TIMEOUT = 2_000;
/** Milliseconds beyond the time limit of a query within which the server must report that it has cancelled it. */
export const GRACE = 1_000;

/** Options of the client for connections whose queries may take so many milliseconds each; null is no limit. */
export function sessionOptions(queryTimeout: number | null): pg.PoolConfig {
  return queryTimeout === null ? unlimitedOptions() : limitedOptions(queryTimeout);
}

/** Without a time limit: a build may take hours, whatever limits the role has. */
function unlimitedOptions(): pg.PoolConfig {
  return withSettings("SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0");
}

/** Raises the memory for each step of a query to what the bitmap of 520,000 pages (4 GB) takes, where it is less. */
const ENOUGH_MEMORY =
  "SELECT set_config('work_mem', '32MB', false) WHERE pg_size_bytes(current_setting('work_mem')) < pg_size_bytes('32MB')";

/**
 * With a time limit per query. The server cancels a late query; if it does not, the client gives up after GRACE. JIT is
 * off: compiling a plan takes longer than running it, and every query would pay for it. With little memory a bitmap
 * remembers pages in place of rows, and then a search computes the keys of the words of each entry in them anew, which
 * takes many times as long as reading them.
 */
function limitedOptions(milliseconds: number): pg.PoolConfig {
  return {
    ...withSettings(`SET statement_timeout = ${milliseconds}; SET jit = off; ${ENOUGH_MEMORY}`),
    query_timeout: milliseconds + GRACE,
  };
}

/**
 * Settings that the meaning of SQL and the text of results depend on, so that those of the role or the database do not
 * matter. The isolation level is one of them because a standby refuses `serializable`.
 */
const BASE_SETTINGS =
  "SET extra_float_digits = 1; SET standard_conforming_strings = on; SET default_transaction_isolation = 'read committed'";
/** Lifts limits that older versions of PostgreSQL do not have: a plain SET would fail there. */
export const NO_LIMITS =
  "SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('transaction_timeout', 'idle_session_timeout')";

/** Sends settings once the connection is open, because a pooler in between accepts none when it is being opened. */
function withSettings(own: string): pg.PoolConfig {
  const onConnect = async (client: pg.ClientBase) => {
    // In separate messages: statements in one message are one transaction, under the previous isolation level.
    for (const text of [`${BASE_SETTINGS}; ${own}`, NO_LIMITS]) {
      const settings = { text, query_timeout: CONNECT_TIMEOUT };
      await client.query(settings);
    }
  };
  return { onConnect };
}
