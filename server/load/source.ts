/** One database that answers live requests: limits its queries, queues the others, and tracks if it is available. */
import type { Database, Session } from "../../shared/database/database.ts";
import type { Query } from "../../shared/query.ts";
import { type CircuitBreakerOptions, openCircuitBreaker } from "./circuit-breaker.ts";
import { openQueue, type Queue } from "./queue.ts";

export type Source = {
  /** Runs when its turn comes. The controller aborts when the database becomes unavailable. For `kind` see Queue. */
  readonly ask: <T>(controller: AbortController, kind: string | null, run: Ask<T>) => Promise<T>;
  /** Checks whether the database answers, because something other than a live query has found that it may not. */
  readonly check: () => void;
  readonly isAway: () => boolean;
  readonly isFull: Queue["isFull"];
  readonly counts: Queue["counts"];
  /** Number of calls of `ask` that it has answered. */
  readonly answered: () => number;
  readonly close: () => void;
};

export type Ask<T> = (session: Pick<Session, "query">) => Promise<T>;

export type SourceOptions = {
  /** Maximum number of live queries at once; always one on the embedded database. */
  readonly connections: number;
  /** Maximum number of live queries that wait. */
  readonly queue: number;
  /** Milliseconds after which a query is given up, including the time that it waits. */
  readonly queryTimeout: number;
};

export type SourceReport = Pick<CircuitBreakerOptions, "onAway" | "onBack">;

/** `report` is told when the database becomes unavailable, and when it is available again. */
export function openSource(
  database: Database,
  { connections, queue, queryTimeout }: SourceOptions,
  report?: SourceReport,
): Source {
  const atOnce = database.kind === "embedded" ? 1 : connections;
  const workQueue = openQueue({ atOnce, waiting: queue, limit: queryTimeout });
  const breaker = openCircuitBreaker({
    probe: database.probe,
    onAway: (error) => {
      database.renewConnections();
      report?.onAway(error);
    },
    onBack: () => report?.onBack(),
  });
  let answered = 0;

  return {
    ask: async (controller, kind, run) => {
      const { signal } = controller;
      const session = { query: (query: Query) => database.query(query, signal) };
      const result = await breaker.run(controller, () => workQueue.run(signal, kind, () => run(session)));
      answered++;
      return result;
    },
    check: breaker.check,
    isAway: breaker.isAway,
    isFull: workQueue.isFull,
    counts: workQueue.counts,
    answered: () => answered,
    close: breaker.close,
  };
}
