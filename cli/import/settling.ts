/**
 * What is left to do for the database after many entries were written: without it, the embedded one would plan as if there were
 * none of them, and look through the last of them for each search.
 */
import type { Database } from "../../shared/database/database.ts";
import { DatabaseFault } from "../../shared/database/fault.ts";
import { TAKE_IN } from "./intake.ts";

/** What was imported is there. Where others keep the tables busy, or the database goes away, PostgreSQL will do so by itself. */
export async function settle(database: Database): Promise<void> {
  await database
    .transaction("write", (session) => session.execute(`${TAKE_IN}; ANALYZE precast.entries, precast.entry_words`))
    .catch((error: unknown) => {
      if (!(error instanceof DatabaseFault)) throw error;
    });
}
