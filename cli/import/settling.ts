/**
 * Updates the statistics and merges the pending lists of the indexes after an import of many entries. Otherwise the
 * embedded database would plan queries as if the entries did not exist, and each search would scan the pending lists.
 */
import type { Database } from "../../shared/database/database.ts";
import { DatabaseFault } from "../../shared/database/fault.ts";
import { TAKE_IN } from "./intake.ts";

/**
 * Ignores a DatabaseFault, such as a lock timeout or a lost connection: the import is committed already, and the
 * autovacuum of PostgreSQL does the same work later.
 */
export async function settle(database: Database): Promise<void> {
  await database
    .transaction("write", (session) => session.execute(`${TAKE_IN}; ANALYZE precast.entries, precast.entry_words`))
    .catch((error: unknown) => {
      if (!(error instanceof DatabaseFault)) throw error;
    });
}
