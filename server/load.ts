/**
 * Bounds live work by permits, one for each query that runs. Work without a permit waits for one in order, and is
 * refused when too much waits already or when it could not complete in time any more. Heavy work, which may take long,
 * gets at most half of the permits and half of the queue, so that a flood of it leaves room for light work.
 */
import type { Plan } from "../shared/api/plan.ts";
import { DatabaseFault, notBegunFault } from "../shared/database/errors.ts";

export type Weight = "light" | "heavy";

export type Queue = {
  /**
   * Runs the work when it has a permit. Throws an `overloaded` DatabaseFault when too much waits already, and when the
   * work has waited too long or the signal aborts before it has begun.
   */
  readonly run: <T>(signal: AbortSignal, weight: Weight, work: () => Promise<T>) => Promise<T>;
  /** Whether more work of the weight would be refused. */
  readonly isFull: (weight: Weight) => boolean;
  readonly counts: () => { readonly running: number; readonly waiting: number };
};

type QueueLimits = {
  /** Number of permits. */
  readonly atOnce: number;
  readonly waiting: number;
  /** Milliseconds after which work is given up, including the time that it waits. */
  readonly limit: number;
};

type Waiting = { readonly weight: Weight; readonly begin: () => void };

/**
 * Work begins with at least this part of its time left: with less, a database that hangs would mostly start and cancel
 * queries.
 */
const TIME_TO_RUN = 1 / 2;

/** A number of pieces of work, and how many of these are heavy. */
type Tally = { readonly all: number; readonly heavy: number };

export function openQueue({ atOnce, waiting: mostWaiting, limit }: QueueLimits): Queue {
  const permits = countShare(atOnce);
  const room = countShare(mostWaiting);
  const queue = new Set<Waiting>();
  let running: Tally = { all: 0, heavy: 0 };
  let waiting: Tally = { all: 0, heavy: 0 };

  /** Gives free permits to the work that has waited longest, among the work that may begin. */
  function returnPermit(weight: Weight): void {
    running = add(running, weight, -1);
    for (const one of queue) {
      if (running.all >= atOnce) return;
      if (hasSpace(running, permits, one.weight)) one.begin();
    }
  }

  async function enter(signal: AbortSignal, weight: Weight): Promise<void> {
    if (signal.aborted) throw notBegunFault();
    if (hasSpace(running, permits, weight)) running = add(running, weight, 1);
    else if (hasSpace(waiting, room, weight)) await waitForPermit(signal, weight);
    else throw new DatabaseFault("overloaded", "too many live queries are waiting");
  }

  function waitForPermit(signal: AbortSignal, weight: Weight): Promise<void> {
    return new Promise((resolve, reject) => {
      const begin = () => {
        leaveQueue();
        running = add(running, weight, 1);
        resolve();
      };
      const giveUp = () => {
        leaveQueue();
        reject(notBegunFault());
      };
      const entry: Waiting = { weight, begin };
      const leaveQueue = () => {
        queue.delete(entry);
        waiting = add(waiting, weight, -1);
        clearTimeout(timer);
        signal.removeEventListener("abort", giveUp);
      };
      const timer = setTimeout(giveUp, limit * (1 - TIME_TO_RUN));
      signal.addEventListener("abort", giveUp, { once: true });
      queue.add(entry);
      waiting = add(waiting, weight, 1);
    });
  }

  return {
    run: async (signal, weight, work) => {
      await enter(signal, weight);
      try {
        return await work();
      } finally {
        returnPermit(weight);
      }
    },
    isFull: (weight) => !hasSpace(running, permits, weight) && !hasSpace(waiting, room, weight),
    counts: () => ({ running: running.all, waiting: waiting.all }),
  };
}

/** What work may have at most: heavy work gets half, rounded up. */
function countShare(all: number): Tally {
  return { all, heavy: Math.ceil(all / 2) };
}

function hasSpace(now: Tally, most: Tally, weight: Weight): boolean {
  return now.all < most.all && (weight === "light" || now.heavy < most.heavy);
}

function add({ all, heavy }: Tally, weight: Weight, count: 1 | -1): Tally {
  return { all: all + count, heavy: weight === "heavy" ? heavy + count : heavy };
}

/** Entries of a list, from its first one to the end of the page, that an index yields quickly. */
const NEAR = 10_000n;

/** Pages of a list without filters are read from an index. Any other list, and any search, may look at every entry. */
export function weigh(plan: Plan): Weight {
  if (plan.kind === "search") return "heavy";
  if (plan.kind !== "list") return "light";
  return plan.conditions.length === 0 && plan.page * BigInt(plan.perPage) <= NEAR ? "light" : "heavy";
}
