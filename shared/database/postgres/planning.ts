/**
 * For which values a connection plans: PostgreSQL prefers to plan a prepared statement again and again as long as it believes that
 * its values make it cheaper, and that takes longer than many answers do. Where one plan does for all values, it is told so, and
 * that plan reads by indexes alone: it outlives the moment, in which a table that is read whole may have been small.
 */
import type pg from "pg";
import type { Access } from "../database.ts";
import { CONNECT_TIMEOUT } from "./pool.ts";

export type Planning = "once" | "by value";

const SETTINGS: Record<Planning, readonly string[]> = {
  once: ["plan_cache_mode = force_generic_plan", "enable_seqscan = off"],
  "by value": ["plan_cache_mode = auto", "enable_seqscan = DEFAULT"],
};

/** The statements that have a connection plan in this way, in all that follows or in one transaction. */
export function settingSql(planning: Planning, set: "SET" | "SET LOCAL" = "SET"): string {
  return SETTINGS[planning].map((setting) => `${set} ${setting}`).join("; ");
}

/** The connections that plan otherwise than they did when they were made. */
const once = new WeakSet<pg.ClientBase>();

/** Has the connection plan what it is asked next in this way. */
export async function planFor(client: pg.ClientBase, planning: Planning): Promise<void> {
  if (once.has(client) === (planning === "once")) return;
  // Nothing makes it take long but a connection whose other end has vanished.
  const set = { text: settingSql(planning), query_timeout: CONNECT_TIMEOUT };
  await client.query(set);
  if (planning === "once") once.add(client);
  else once.delete(client);
}

const BEGIN: Record<Access, string> = {
  read: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
  write: "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
};

/** Begins a transaction, by value: so it is known what holds when it is rolled back. */
export async function begin(client: pg.ClientBase, access: Access): Promise<void> {
  await planFor(client, "by value");
  // The pool may lend a connection whose other end has vanished: nothing but that makes BEGIN take long.
  const statement = { text: BEGIN[access], query_timeout: CONNECT_TIMEOUT };
  await client.query(statement);
}

/** Undoes a transaction, and with it what has been set in it. */
export async function rollBack(client: pg.ClientBase): Promise<void> {
  once.delete(client);
  await client.query("ROLLBACK");
}
