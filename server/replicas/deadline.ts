/** How long a server may take to say how it is. */
import type { Database, Session } from "../../shared/database/database.ts";

const LIMIT = 1_000;

/** What `ask` asks is cancelled when its time is over. */
export async function inTime<T>(database: Database, ask: (session: Session) => Promise<T>): Promise<T> {
  const signal = AbortSignal.timeout(LIMIT);
  try {
    return await ask({ query: (query) => database.query(query, signal), execute: database.execute });
  } catch (error) {
    throw signal.aborted ? new Error(`no answer within ${LIMIT / 1_000} s`, { cause: error }) : error;
  }
}
