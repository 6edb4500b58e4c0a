/**
 * Sets whether a connection plans a prepared statement once or for its values. PostgreSQL plans a statement anew for
 * each execution while it estimates that plans for the values are cheaper, and planning takes longer than many answers
 * do. Where one plan fits all values, a generic plan is forced, and sequential scans are off for it: such a plan may be
 * made while the table is small, and would be kept after the table has grown.
 */
import type pg from "pg";
import type { Access } from "../database.ts";
import { CONNECT_TIMEOUT } from "./session.ts";

export type Planning = "generic" | "auto";

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
  // SET is slow only on a connection whose other end has vanished.
  const set = { text: planningSql(planning), query_timeout: CONNECT_TIMEOUT };
  await client.query(set);
  if (planning === "generic") genericClients.add(client);
  else genericClients.delete(client);
}

/** Without READ WRITE, which would override an operator who has set the database to read-only. */
const BEGIN: Record<Access, string> = {
  read: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
  write: "BEGIN ISOLATION LEVEL READ COMMITTED",
};

/** Begins a transaction, planning "auto": that is then also the setting that a rollback restores. */
export async function begin(client: pg.ClientBase, access: Access): Promise<void> {
  await planFor(client, "auto");
  // BEGIN is slow only on a connection whose other end has vanished, which the pool may lend.
  const statement = { text: BEGIN[access], query_timeout: CONNECT_TIMEOUT };
  await client.query(statement);
}

/** Rolls back a transaction, and with it the settings that were made in it. */
export async function rollBack(client: pg.ClientBase): Promise<void> {
  genericClients.delete(client);
  await client.query("ROLLBACK");
}
