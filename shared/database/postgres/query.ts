/** Runs one query within its limits: gives it up in time, or when nobody waits for its rows any more. */
import type pg from "pg";
import type { Query, Row } from "../../sql/query.ts";
import { DatabaseFault, notBegunFault, withFaults } from "../fault.ts";
import { type AwaitTurn, cancelQuery } from "./cancel.ts";
import { isConnectionLost, type Pool } from "./pool.ts";
import { GRACE } from "./session.ts";
import { runStatement } from "./statement.ts";

/** The signal that aborts a query, and the wait for its turn to be cancelled. */
type Abort = { readonly signal: AbortSignal; readonly awaitTurn: AwaitTurn };
type QueryLimits = {
  /** The time limit that the server applies, in milliseconds; null for none. */
  readonly limit: number | null;
  /** Null when the query cannot be aborted. */
  readonly abort: Abort | null;
};
const UNLIMITED: QueryLimits = { limit: null, abort: null };

export async function runQuery(
  client: pg.PoolClient,
  query: Query,
  prepared: Pool["prepared"],
  { limit, abort }: QueryLimits = UNLIMITED,
): Promise<Row[]> {
  if (abort?.signal.aborted) throw notBegunFault();
  const asking = withFaults(() => runStatement(client, query, prepared), limit);
  return abort === null ? asking : cancellable(client, asking, abort);
}

/** Cancels the query in the database when the signal aborts. */
function cancellable<T>(client: pg.PoolClient, asking: Promise<T>, { signal, awaitTurn }: Abort): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = () => void cancelled(client, asking, awaitTurn).catch(reject);
    signal.addEventListener("abort", cancel, { once: true });
    const settle = <R>(end: (result: R) => void) => {
      return (result: R) => {
        signal.removeEventListener("abort", cancel);
        // After an abort, `cancelled` decides the outcome, and the result of the query is dropped.
        if (!signal.aborted) end(result);
      };
    };
    asking.then(settle(resolve), settle(reject));
  });
}

/**
 * Cancels a query and throws the fault of an aborted one. Waits until both the query and its cancellation have ended: a
 * late cancellation would hit the next query of the connection. If that takes longer than GRACE, throws a fault that
 * makes the pool discard the connection.
 */
async function cancelled(client: pg.PoolClient, asking: Promise<unknown>, awaitTurn: AwaitTurn): Promise<never> {
  const ended = asking.then(
    () => null,
    (error: unknown) => error,
  );
  const ending = (await awaitTurn(ended)) ? [ended, cancelQuery(client, GRACE)] : [ended];
  const [error] = await withFaults(() => withDeadline(GRACE, Promise.all(ending)));
  if (isConnectionLost(error)) throw error;
  throw new DatabaseFault("timeout", "the query was cancelled");
}

async function withDeadline<T>(milliseconds: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("the query could not be cancelled")), milliseconds);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
