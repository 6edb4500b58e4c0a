/**
 * The session of a connection to PostgreSQL: the settings that answers depend on, the limits of its queries, how it plans
 * them, its transactions, and its end.
 */
import type pg from "pg";
import type { Access } from "../database.ts";

/** Milliseconds for connecting, and for statements that are slow only when the connection is dead. */
export const CONNECT_TIMEOUT = 2_000;
/** Milliseconds beyond the time limit of a query within which the server must report that it has cancelled it. */
export const GRACE = 1_000;

/** TCP keep-alive: a connection whose other end has vanished fails, instead of being waited for. */
export const KEEP_ALIVE = { keepAlive: true, keepAliveInitialDelayMillis: 10_000 };

/** Type parsers that leave every value as the text that the database sends. */
export const AS_TEXT = { getTypeParser: () => (value: unknown) => value } as unknown as pg.CustomTypesConfig;

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
 * matter. The isolation level is one of them because a standby refuses `serializable`. No function or operator of
 * another schema can stand in for one of ours, and a row that the role may not see is an error, as it would otherwise
 * count as deleted.
 */
const BASE_SETTINGS = [
  "search_path = pg_catalog, pg_temp",
  "row_security = off",
  "extra_float_digits = 1",
  "standard_conforming_strings = on",
  "quote_all_identifiers = off",
  "default_transaction_isolation = 'read committed'",
];
/** Lifts limits that older versions of PostgreSQL do not have: a plain SET would fail there. */
export const NO_LIMITS =
  "SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('transaction_timeout', 'idle_session_timeout')";

/**
 * Ends a statement within seconds of its client's death: an import that was killed would hold its locks for as long as a
 * statement takes. PostgreSQL 13 does not know the setting.
 */
const WATCH_CLIENT =
  "SELECT set_config(name, '2s', false) FROM pg_settings WHERE name = 'client_connection_check_interval' AND setting = '0'";
/** invalid_parameter_value: the server runs on a system that cannot tell it. */
const INVALID_VALUE = "22023";

async function watchClient(client: pg.ClientBase): Promise<void> {
  await runQuick(client, WATCH_CLIENT).catch((error: Error & { readonly code?: string }) => {
    if (error.code !== INVALID_VALUE) throw error;
  });
}

function setAll(set: "SET" | "SET LOCAL"): string {
  return BASE_SETTINGS.map((setting) => `${set} ${setting}`).join("; ");
}

/** Sends settings once the connection is open, because a pooler in between accepts none when it is being opened. */
function withSettings(own: string): pg.PoolConfig {
  const onConnect = async (client: pg.ClientBase) => {
    // In separate messages: statements in one message are one transaction, under the previous isolation level.
    for (const text of [`${setAll("SET")}; ${own}`, NO_LIMITS]) await runQuick(client, text);
    await watchClient(client);
  };
  return { onConnect };
}

/**
 * Whether a connection plans a prepared statement once or for its values. PostgreSQL plans a statement anew for each
 * execution while it estimates that plans for the values are cheaper, and planning takes longer than many answers do.
 * Where one plan fits all values, a generic plan is forced, and sequential scans are off for it: such a plan may be made
 * while the table is small, and would be kept after the table has grown.
 */
type Planning = "generic" | "auto";

const SETTINGS: Record<Planning, readonly string[]> = {
  generic: ["plan_cache_mode = force_generic_plan", "enable_seqscan = off"],
  auto: ["plan_cache_mode = auto", "enable_seqscan = DEFAULT"],
};

/** SQL that sets how the connection plans: for the session (`SET`) or for the current transaction (`SET LOCAL`). */
export function planningSql(planning: Planning, set: "SET" | "SET LOCAL" = "SET"): string {
  return SETTINGS[planning].map((setting) => `${set} ${setting}`).join("; ");
}

/** The connections that plan "generic"; a new connection plans "auto". */
const genericClients = new WeakSet<pg.ClientBase>();

/** Makes the connection plan its next statements in this way. */
export async function planFor(client: pg.ClientBase, planning: Planning): Promise<void> {
  if (genericClients.has(client) === (planning === "generic")) return;
  await runQuick(client, planningSql(planning));
  if (planning === "generic") genericClients.add(client);
  else genericClients.delete(client);
}

/** Without READ WRITE, which would override an operator who has set the database to read-only. */
const BEGIN: Record<Access, string> = {
  read: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
  write: "BEGIN ISOLATION LEVEL READ COMMITTED",
};

/**
 * Begins a transaction, planning "auto": that is then also the setting that a rollback restores. The settings are made
 * again for it, because a pooler may have put the transaction into another session than the one that was set up.
 */
export async function begin(client: pg.ClientBase, access: Access): Promise<void> {
  await planFor(client, "auto");
  await runQuick(client, `${BEGIN[access]}; ${setAll("SET LOCAL")}`);
}

/** Rolls back a transaction, and with it the settings that were made in it. */
export async function rollBack(client: pg.ClientBase): Promise<void> {
  genericClients.delete(client);
  await client.query("ROLLBACK");
}

/** Runs a statement that is slow only on a connection whose other end has vanished, which the pool may lend. */
export async function runQuick(client: pg.ClientBase, text: string): Promise<void> {
  const statement = { text, query_timeout: CONNECT_TIMEOUT };
  await client.query(statement);
}

/** Closes a connection without waiting for it. */
export function closeInBackground(client: pg.Client): void {
  client.end().catch(() => {});
  destroyLater(client);
}

/** Destroys the socket after GRACE: a server that hangs never closes it, and the process would wait for that. */
export function destroyLater(client: pg.ClientBase): void {
  const { connection } = client as unknown as { readonly connection: pg.Connection };
  setTimeout(() => connection.stream.destroy(), GRACE).unref();
}
