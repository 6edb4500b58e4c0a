/**
 * What an import has written waits in the indexes of words and texts until somebody takes it in, which is half as much work as
 * writing it. So that is done over a connection of its own, beside the writing.
 */
import type { Database } from "../../shared/database/database.ts";

export type Intake = {
  /** More is waiting. */
  readonly more: () => void;
  readonly ended: () => Promise<void>;
};

/** What may wait before whoever writes takes it in: so much that the intake comes first. For a transaction that writes. */
export const LET_WAIT = "SET LOCAL gin_pending_list_limit = '32MB'; SET LOCAL work_mem = '64MB'";
/** For a transaction of its own: it fails where another keeps the tables busy. */
export const TAKE_IN = "SET LOCAL lock_timeout = '1s'; SELECT precast.take_in_pending()";

/** The embedded database has one connection, and does nothing beside. */
export function openIntake(database: Database): Intake {
  if (database.kind === "embedded") return { more: () => {}, ended: async () => {} };
  let taking: Promise<unknown> | null = null;

  async function takeIn(): Promise<void> {
    // Where this fails, those who write take in what is waiting, as they do without an import.
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
