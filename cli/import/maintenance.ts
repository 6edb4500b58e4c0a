/**
 * Keeps the indexes of content fit while an import writes, and after it. New rows wait in the pending lists of GIN indexes
 * until a session merges them into the index, which is half as much work as writing them there.
 */
import type { Database } from "../../shared/database/database.ts";
import { DatabaseFault } from "../../shared/database/errors.ts";

// Merges the pending lists while an import writes, in a second connection.

export type PendingListMerger = {
  /** To be called for each batch of rows that the import has written: starts a merge now and then, unless one runs. */
  readonly batchWritten: () => void;
  /** Resolves when no merge runs any more. */
  readonly whenIdle: () => Promise<void>;
};

/** Merging several batches at once takes less time than merging each: a key that they share is looked up once. */
const BATCHES_PER_MERGE = 8;
/**
 * For the transaction that writes: raises the size at which a writer merges a pending list itself, so that the merger
 * does it before.
 */
export const RAISE_PENDING_LIST_LIMIT = "SET LOCAL gin_pending_list_limit = '32MB'; SET LOCAL work_mem = '64MB'";
/** Merges the pending lists, in a separate transaction. Fails when it waits for a lock for more than a second. */
const MERGE_PENDING_LISTS = "SET LOCAL lock_timeout = '1s'; SELECT precast.take_in_pending()";

/** On the embedded database, which has only one connection, the merger does nothing. */
export function openPendingListMerger(database: Database): PendingListMerger {
  if (database.kind === "embedded") return { batchWritten: () => {}, whenIdle: async () => {} };
  let merging: Promise<unknown> | null = null;
  let batches = 0;

  async function merge(): Promise<void> {
    // After a failure, the sessions that write merge the pending lists, as they do without an import.
    await database.transaction("write", (session) => session.execute(MERGE_PENDING_LISTS)).catch(() => {});
    merging = null;
  }

  return {
    batchWritten: () => {
      if (batches % BATCHES_PER_MERGE === 0) merging ??= merge();
      batches += 1;
    },
    whenIdle: async () => {
      await merging;
    },
  };
}

// Updates the statistics and merges the pending lists of the indexes after an import. Otherwise the
// embedded database would plan queries as if the entries did not exist, and each search would scan the pending lists.

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
