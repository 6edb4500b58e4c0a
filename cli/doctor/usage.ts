/** Reads the recent counted requests, which are those that `precast doctor` considers. */
import { readUsage, type UsageRow } from "../usage/rows.ts";
import type { CheckContext } from "./check.ts";

/** Older requests are no reason to change anything today. */
export const RECENT_DAYS = 30;
const DAY = 86_400_000;

/** Without those of apps that exist no longer. */
export async function readRecentUsage({ database, now, types }: CheckContext): Promise<UsageRow[]> {
  const since = new Date(now.getTime() - RECENT_DAYS * DAY).toISOString().slice(0, 10);
  const keys = new Set(types.map(({ app }) => app.key));
  return (await readUsage(database, { app: null, since, until: null })).filter(({ app }) => keys.has(app));
}
