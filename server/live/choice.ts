/** Chooses the database for each live query: a usable replica or else the primary, and another one when that fails. */
import { DatabaseFault, hasTooManyConnections } from "../../shared/database/fault.ts";
import type { Ask, Source } from "../breaker.ts";
import type { Replica } from "../replicas.ts";

export type LiveState = { readonly running: number; readonly waiting: number; readonly databaseAway: boolean };

type Choice = {
  /** Returns the source that the next query goes to. */
  readonly choose: () => Source;
  /** Queries the chosen source, and others when it fails. Retries are safe because live queries only read. */
  readonly ask: Source["ask"];
  readonly state: () => LiveState;
  /** Number of queries that each source has answered: the primary first, then the replicas in their order. */
  readonly answered: () => readonly number[];
  readonly close: () => void;
};

type ReplicaSource = { readonly source: Source } & Pick<Replica, "status">;

export function openChoice(primary: Source, replicas: readonly ReplicaSource[]): Choice {
  const all = [primary, ...replicas.map(({ source }) => source)];
  let turn = 0;

  function usable(): readonly Source[] {
    const able = replicas.filter(({ source, status }) => status().kind === "used" && !source.isAway());
    return able.map(({ source }) => source);
  }

  /** The usable replica with the fewest running and waiting queries, in turn among equals; without one, the primary. */
  function choose(): Source {
    const able = usable();
    const first = turn % Math.max(able.length, 1);
    const [begin = primary, ...others] = [...able.slice(first), ...able.slice(0, first)];
    return others.reduce((best, one) => (loadOf(one) < loadOf(best) ? one : best), begin);
  }

  /** Prefers the primary: where one replica has failed, another may fail for the same reason. */
  function chooseOther(asked: readonly Source[]): Source | undefined {
    return [primary, ...usable()].find((source) => !asked.includes(source) && !source.isAway());
  }

  async function ask<T>(controller: AbortController, kind: string | null, run: Ask<T>): Promise<T> {
    // Without replicas there is nothing to fall back to.
    if (replicas.length === 0) return primary.ask(controller, kind, run);
    const { signal } = controller;
    const asked = [choose()];
    turn++;
    for (;;) {
      const source = asked.at(-1) as Source;
      try {
        return await withLinkedController(signal, (own) => source.ask(own, kind, run));
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

function loadOf({ counts }: Source): number {
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
