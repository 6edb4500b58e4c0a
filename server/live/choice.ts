/** Which database a live query asks: a replica that may answer, or the primary; and which one when that fails. */
import { DatabaseFault, hasNoSlot } from "../../shared/database/fault.ts";
import type { Ask, Source } from "../load/source.ts";
import type { Replica } from "../replicas/replica.ts";

export type LiveState = { readonly running: number; readonly waiting: number; readonly databaseAway: boolean };

export type Choice = {
  /** Where the next query goes. */
  readonly choose: () => Source;
  /** Asks there, and elsewhere when that fails: nothing is written. */
  readonly ask: Source["ask"];
  readonly state: () => LiveState;
  /** How many each has answered: the primary, then the replicas. */
  readonly answered: () => readonly number[];
  readonly close: () => void;
};

export type Reader = { readonly source: Source } & Pick<Replica, "standing">;

export function openChoice(primary: Source, readers: readonly Reader[]): Choice {
  const all = [primary, ...readers.map(({ source }) => source)];
  let turn = 0;

  function usable(): readonly Source[] {
    const able = readers.filter(({ source, standing }) => standing().kind === "used" && !source.isAway());
    return able.map(({ source }) => source);
  }

  /** The one that has least to do; those that have as much take turns. */
  function choose(): Source {
    const able = usable();
    const first = turn % Math.max(able.length, 1);
    const [begin = primary, ...others] = [...able.slice(first), ...able.slice(0, first)];
    return others.reduce((best, one) => (loadOf(one) < loadOf(best) ? one : best), begin);
  }

  /** The primary goes before the others: what one replica cannot do, another may not either. */
  function chooseOther(asked: readonly Source[]): Source | undefined {
    return [primary, ...usable()].find((source) => !asked.includes(source) && !source.isAway());
  }

  async function ask<T>(controller: AbortController, kind: string | null, run: Ask<T>): Promise<T> {
    // There is no other to ask when it fails.
    if (readers.length === 0) return primary.ask(controller, kind, run);
    const { signal } = controller;
    const asked = [choose()];
    turn++;
    for (;;) {
      const source = asked.at(-1) as Source;
      try {
        return await withOwn(signal, (own) => source.ask(own, kind, run));
      } catch (error) {
        const other = signal.aborted || !isItsOwn(error, source !== primary) ? undefined : chooseOther(asked);
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

/** What takes too long, or has waited too long, would do so anywhere. What a replica refuses, it may not have yet. */
function isItsOwn(error: unknown, isReplica: boolean): boolean {
  if (!(error instanceof DatabaseFault)) return isReplica;
  return error.reason === "unavailable" || hasNoSlot(error);
}

/** A controller that ends with the signal, and may be ended alone. */
async function withOwn<T>(signal: AbortSignal, run: (own: AbortController) => Promise<T>): Promise<T> {
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
