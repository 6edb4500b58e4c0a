/**
 * For which values a connection plans: PostgreSQL prefers to plan a prepared statement again and again as long as it believes that
 * its values make it cheaper, and that takes longer than many answers do. Where one plan does for all values, it is told so.
 */
import type pg from "pg";

export type Planning = "once" | "by value";

const SETTING: Record<Planning, string> = {
  once: "SET plan_cache_mode = force_generic_plan",
  "by value": "SET plan_cache_mode = auto",
};

/** The connections that plan otherwise than they did when they were made. */
const once = new WeakSet<pg.ClientBase>();

/** Has the connection plan what it is asked next in this way. */
export async function planFor(client: pg.ClientBase, planning: Planning): Promise<void> {
  if (once.has(client) === (planning === "once")) return;
  await client.query(SETTING[planning]);
  if (planning === "once") once.add(client);
  else once.delete(client);
}
