/** Checks whether the database answers, within a time limit of its own and with one query at a time. */
import type { Database } from "../../shared/database/database.ts";
import { sql } from "../../shared/query.ts";
import { shareRunning } from "../load/share-running.ts";
import type { Health } from "./readiness.ts";

/** In milliseconds. Health checks wait a few seconds at most. */
const LIMIT = 1_000;
const TOO_SLOW: Health = { ready: false, error: `no answer within ${LIMIT / 1_000} s` };

export type Probe = () => Promise<Health>;

/** Probes that overlap share one query: those of a database that hangs must not use up its connections. */
export function openProbe(database: Pick<Database, "query">): Probe {
  const ask = shareRunning(() => askOnce(database));
  return () => Promise.race([ask(), tooSlow()]);
}

/** A database without the tables of Precast is not ready either. */
async function askOnce(database: Pick<Database, "query">): Promise<Health> {
  try {
    await database.query(sql("SELECT EXISTS (SELECT FROM precast.apps)::text"));
    return { ready: true, error: null };
  } catch (error) {
    return { ready: false, error: error instanceof Error ? error.message || error.name : String(error) };
  }
}

function tooSlow(): Promise<Health> {
  return new Promise((resolve) => setTimeout(resolve, LIMIT, TOO_SLOW).unref());
}
