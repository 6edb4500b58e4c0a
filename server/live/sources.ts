/**
 * The databases that answer live requests, a primary and its replicas: limits the queries of each, and chooses one for
 * each query, a usable replica or else the primary, and another one when that fails.
 */
import type { Database, Session } from "../../shared/database/database.ts";
import { DatabaseFault, describeOutage, hasTooManyConnections } from "../../shared/database/errors.ts";
import type { Query } from "../../shared/sql/query.ts";
import { openCircuitBreaker } from "../breaker.ts";
import { openQueue, type Queue, type Weight } from "../load.ts";
import type { Replica } from "../replicas.ts";

export type SourcesOptions = {
  /** Maximum number of live queries at once on each database; always one on the embedded database. */
  readonly connections: number;
  /** Maximum number of live queries that wait for each database. */
  readonly queue: number;
  /** Milliseconds after which a query is given up, including the time that it waits. */
  readonly queryTimeout: number;
  /** Read replicas. They answer instead of the primary as long as one of them is usable. */
  readonly replicas?: readonly Replica[];
  /** Calls `tell` whenever the primary has not answered a check of its replicas. */
  readonly watchPrimary?: (tell: () => void) => void;
  /** Told when the primary becomes unavailable and when it is available again. Replicas are reported by replicas.ts. */
  readonly report?: (news: string) => void;
};

export type LiveState = { readonly running: number; readonly waiting: number; readonly databaseAway: boolean };

export type Sources = {
  /** Returns the source that the next query goes to. */
  readonly choose: () => Source;
  /** Queries the chosen source, and others when it fails. Retries are safe because live queries only read. */
  readonly ask: Source["ask"];
  readonly state: () => LiveState;
  /** Number of queries that each source has answered: the primary first, then the replicas in their order. */
  readonly answered: () => readonly number[];
  readonly close: () => void;
};

/** One of the databases. */
type Source = {
  /** Runs when it gets a permit. The controller aborts when the database becomes unavailable. */
  readonly ask: <T>(controller: AbortController, weight: Weight, run: Ask<T>) => Promise<T>;
  /** Checks whether the database answers, because something other than a live query has found that it may not. */
  readonly check: () => void;
  readonly isAway: () => boolean;
  /** Whether it may be asked now. */
  readonly isUsable: () => boolean;
  readonly isFull: Queue["isFull"];
  readonly counts: Queue["counts"];
  /** Number of calls of `ask` that it has answered. */
  readonly answered: () => number;
  readonly close: () => void;
};

export type Ask<T> = (session: Pick<Session, "query">) => Promise<T>;

export function openSources(database: Database, options: SourcesOptions): Sources {
  const primary = openSource(database, options, primaryReport(options));
  const replicas = (options.replicas ?? []).map((replica) => openReplicaSource(replica, options));
  const all = [primary, ...replicas];
  let turn = 0;
  // While replicas take all live queries, none of these finds that the primary is away.
  options.watchPrimary?.(primary.check);

  const usable = () => replicas.filter((source) => source.isUsable());

  /** The usable replica with the fewest running and waiting queries, in turn among equals; without one, the primary. */
  function choose(): Source {
    const able = usable();
    const first = turn % Math.max(able.length, 1);
    const [begin = primary, ...others] = [...able.slice(first), ...able.slice(0, first)];
    return others.reduce((best, one) => (measureLoad(one) < measureLoad(best) ? one : best), begin);
  }

  /** Prefers the primary: where one replica has failed, another may fail for the same reason. */
  function chooseOther(asked: readonly Source[]): Source | undefined {
    return [primary, ...usable()].find((source) => !asked.includes(source) && !source.isAway());
  }

  async function ask<T>(controller: AbortController, weight: Weight, run: Ask<T>): Promise<T> {
    // Without replicas there is nothing to fall back to.
    if (replicas.length === 0) return primary.ask(controller, weight, run);
    const { signal } = controller;
    const asked = [choose()];
    turn++;
    for (;;) {
      const source = asked.at(-1) as Source;
      try {
        return await withLinkedController(signal, (own) => source.ask(own, weight, run));
      } catch (error) {
        const other = signal.aborted || !isSourceSpecific(error, source !== primary) ? undefined : chooseOther(asked);
        if (other === undefined) throw error;
        asked.push(other);
      }
    }
  }

  return {
    choose,
    ask,
    state: () => {
      const counts = all.map((source) => source.counts());
      const sum = (name: "running" | "waiting") => counts.reduce((total, one) => total + one[name], 0);
      return { running: sum("running"), waiting: sum("waiting"), databaseAway: primary.isAway() };
    },
    answered: () => all.map((source) => source.answered()),
    close: () => {
      for (const source of all) source.close();
    },
  };
}

type AvailabilityReport = { readonly onAway: (error: unknown) => void; readonly onBack: () => void };

function primaryReport({ report = () => {}, replicas = [] }: SourcesOptions): AvailabilityReport {
  const instead = replicas.length > 0 ? "Only its replicas answer live requests" : "Live requests get 503";
  return {
    onAway: (error) => report(`${describeOutage(error)}. ${instead} until it is available again.`),
    onBack: () => report("The database answers again."),
  };
}

function openReplicaSource({ database, status }: Replica, options: SourcesOptions): Source {
  const source = openSource(database, options, { onAway: () => {}, onBack: () => {} });
  return { ...source, isUsable: () => status().kind === "used" && !source.isAway() };
}

function openSource(
  database: Database,
  { connections, queue: waiting, queryTimeout }: SourcesOptions,
  { onAway, onBack }: AvailabilityReport,
): Source {
  const atOnce = database.kind === "embedded" ? 1 : connections;
  const queue = openQueue({ atOnce, waiting, limit: queryTimeout });
  const breaker = openCircuitBreaker({
    probe: database.probe,
    onAway: (error) => {
      database.renewConnections();
      onAway(error);
    },
    onBack,
  });
  let answered = 0;

  return {
    ask: async (controller, weight, run) => {
      const { signal } = controller;
      const session = { query: (query: Query) => database.query(query, signal) };
      const result = await breaker.run(controller, () => queue.run(signal, weight, () => run(session)));
      answered++;
      return result;
    },
    check: breaker.check,
    isAway: breaker.isAway,
    isUsable: () => !breaker.isAway(),
    isFull: queue.isFull,
    counts: queue.counts,
    answered: () => answered,
    close: breaker.close,
  };
}

function measureLoad({ counts }: Source): number {
  const { running, waiting } = counts();
  return running + waiting;
}

/**
 * Whether the failure is specific to this source, so that another one may succeed. A query that runs or waits for too
 * long would do so anywhere. Other errors of a replica may come from a change that it has not received yet.
 */
function isSourceSpecific(error: unknown, isReplica: boolean): boolean {
  if (!(error instanceof DatabaseFault)) return isReplica;
  return error.reason === "unavailable" || hasTooManyConnections(error);
}

/** Gives `run` a controller that aborts with the signal, and that can be aborted without affecting the signal. */
async function withLinkedController<T>(signal: AbortSignal, run: (own: AbortController) => Promise<T>): Promise<T> {
  const own = new AbortController();
  const end = () => own.abort(signal.reason);
  if (signal.aborted) end();
  signal.addEventListener("abort", end, { once: true });
  try {
    return await run(own);
  } finally {
    signal.removeEventListener("abort", end);
  }
}
