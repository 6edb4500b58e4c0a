/**
 * Updates the statistics and merges the pending lists of the indexes after an import of many entries. Otherwise the
 * embedded database would plan queries as if the entries did not exist, and each search would scan the pending lists.
 */
import type { Database } from "../../shared/database/database.ts";
import { DatabaseFault } from "../../shared/database/fault.ts";
import { MERGE_PENDING_LISTS } from "./pending-list-merger.ts";

/**
 * Ignores a DatabaseFault, such as a lock timeout or a lost connection: the import is committed already, and the
 * autovacuum of PostgreSQL does the same work later.
 */
export async function maintainTables(database: Database): Promise<void> {
  await database
    .transaction("write", (session) =>
      session.execute(
        `${MERGE_PENDING_LISTS}; ANALYZE precast.entries, precast.entry_words, precast.terms, precast.value_counts`,
      ),
    )
    .catch((error: unknown) => {
      if (!(error instanceof DatabaseFault)) throw error;
    });
}
