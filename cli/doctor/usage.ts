/** The counted requests that `precast doctor` looks at: those of the last days. */
import { readUsage, type UsageRow } from "../usage/rows.ts";
import type { Patient } from "./check.ts";

/** What was asked before is no reason to change anything today. */
export const DAYS = 30;
const DAY = 86_400_000;

export function readRecentUsage({ database, now }: Patient): Promise<UsageRow[]> {
  const since = new Date(now.getTime() - DAYS * DAY).toISOString().slice(0, 10);
  return readUsage(database, { app: null, since, until: null });
}
