/**
 * What is left to do for the database after many entries were written: without it, the embedded one would plan as if there were
 * none of them, and look through the last of them for each search.
 */
import type { Database } from "../../shared/database/database.ts";
import { TAKE_IN } from "./intake.ts";

/** SQLSTATE lock_not_available. */
const LOCKED = "55P03";

/** Where another keeps the tables busy, PostgreSQL will do so by itself. */
export async function settle(database: Database): Promise<void> {
  await database
    .transaction("write", (session) => session.execute(`${TAKE_IN}; ANALYZE precast.entries, precast.entry_words`))
    .catch((error: { readonly code?: string }) => {
      if (error.code !== LOCKED) throw error;
    });
}
