/** Reads the recent counted requests, which are those that `precast doctor` considers. */
import { readUsage, type UsageRow } from "../usage/rows.ts";
import type { Patient } from "./check.ts";

/** Older requests are no reason to change anything today. */
export const DAYS = 30;
const DAY = 86_400_000;

export function readRecentUsage({ database, now }: Patient): Promise<UsageRow[]> {
  const since = new Date(now.getTime() - DAYS * DAY).toISOString().slice(0, 10);
  return readUsage(database, { app: null, since, until: null });
}
