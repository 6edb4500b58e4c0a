/** Limits how long a server may take to report its state. */
import type { Database, Session } from "../../shared/database/database.ts";

const LIMIT = 1_000;

/** Runs `ask` with queries that are cancelled after the limit; then it throws an Error that names the limit. */
export async function withDeadline<T>(database: Database, ask: (session: Session) => Promise<T>): Promise<T> {
  const signal = AbortSignal.timeout(LIMIT);
  try {
    return await ask({ query: (query) => database.query(query, signal), execute: database.execute });
  } catch (error) {
    throw signal.aborted ? new Error(`no answer within ${LIMIT / 1_000} s`, { cause: error }) : error;
  }
}
