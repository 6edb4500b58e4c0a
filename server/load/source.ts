/** A database that answers live: so many queries at once, those that wait for them, and whether it is there. */
import type { Database, Query, Session } from "../../shared/database/database.ts";
import { openCircuitBreaker } from "./circuit-breaker.ts";
import { openQueue, type Queue } from "./queue.ts";

export type Source = {
  /** Asks when its turn comes. The controller is told when the database goes away meanwhile. For `kind` see Queue. */
  readonly ask: <T>(controller: AbortController, kind: string | null, run: Ask<T>) => Promise<T>;
  readonly isAway: () => boolean;
  readonly isFull: Queue["isFull"];
  readonly counts: Queue["counts"];
  /** How many it has answered. */
  readonly answered: () => number;
  readonly close: () => void;
};

export type Ask<T> = (session: Pick<Session, "query">) => Promise<T>;

export type SourceOptions = {
  /** Live queries at once at most; one on the embedded database. And how many may wait for one of those to end. */
  readonly connections: number;
  readonly queue: number;
  /** Milliseconds from when a query is asked for to when it is given up, its waiting included. */
  readonly queryTimeout: number;
};

export function openSource(database: Database, { connections, queue, queryTimeout }: SourceOptions): Source {
  const atOnce = database.kind === "embedded" ? 1 : connections;
  const line = openQueue({ atOnce, waiting: queue, limit: queryTimeout });
  const breaker = openCircuitBreaker({ probe: database.probe, onAway: database.renew });
  let answered = 0;

  return {
    ask: async (controller, kind, run) => {
      const { signal } = controller;
      const session = { query: (query: Query) => database.query(query, signal) };
      const result = await breaker.during(controller, () => line.run(signal, kind, () => run(session)));
      answered++;
      return result;
    },
    isAway: breaker.isAway,
    isFull: line.isFull,
    counts: line.counts,
    answered: () => answered,
    close: breaker.close,
  };
}
