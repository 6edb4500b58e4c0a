/**
 * Merges the pending lists of the GIN indexes while an import writes. New rows wait in these lists until a session
 * merges them into the index, which is half as much work as writing them. A second connection does that in parallel.
 */
import type { Database } from "../../shared/database/database.ts";

export type Intake = {
  /** To be called when the import has written more rows: starts a merge, unless one runs. */
  readonly more: () => void;
  /** Resolves when no merge runs any more. */
  readonly ended: () => Promise<void>;
};

/**
 * For the transaction that writes: raises the size at which a writer merges a pending list itself, so that the intake
 * does it before.
 */
export const LET_WAIT = "SET LOCAL gin_pending_list_limit = '32MB'; SET LOCAL work_mem = '64MB'";
/** Merges the pending lists, in a separate transaction. Fails when it waits for a lock for more than a second. */
export const TAKE_IN = "SET LOCAL lock_timeout = '1s'; SELECT precast.take_in_pending()";

/** On the embedded database, which has only one connection, the intake does nothing. */
export function openIntake(database: Database): Intake {
  if (database.kind === "embedded") return { more: () => {}, ended: async () => {} };
  let taking: Promise<unknown> | null = null;

  async function takeIn(): Promise<void> {
    // After a failure, the sessions that write merge the pending lists, as they do without an import.
    await database.transaction("write", (session) => session.execute(TAKE_IN)).catch(() => {});
    taking = null;
  }

  return {
    more: () => {
      taking ??= takeIn();
    },
    ended: async () => {
      await taking;
    },
  };
}
