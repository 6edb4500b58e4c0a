/** The bound of live work: so much runs at once, so much waits for that in its order, and more is refused at once. */
import { DatabaseFault, notBegun } from "../../shared/database/fault.ts";

export type Queue = {
  /** Throws a DatabaseFault when too many wait already, and when the signal aborts before the work has begun. */
  readonly run: <T>(signal: AbortSignal, work: () => Promise<T>) => Promise<T>;
  readonly counts: () => { readonly running: number; readonly waiting: number };
};

export type QueueLimits = { readonly atOnce: number; readonly waiting: number };

export function openQueue(limits: QueueLimits): Queue {
  let running = 0;
  const waiting = new Set<() => void>();

  function enter(signal: AbortSignal): Promise<void> {
    if (signal.aborted) throw notBegun();
    if (running < limits.atOnce) {
      running++;
      return Promise.resolve();
    }
    if (waiting.size >= limits.waiting) throw new DatabaseFault("overloaded", "too many live queries wait");
    return new Promise((resolve, reject) => {
      const begin = () => {
        signal.removeEventListener("abort", giveUp);
        resolve();
      };
      const giveUp = () => {
        waiting.delete(begin);
        reject(notBegun());
      };
      signal.addEventListener("abort", giveUp, { once: true });
      waiting.add(begin);
    });
  }

  /** The place goes to whoever has waited longest. */
  function leave(): void {
    const [next] = waiting;
    if (next === undefined) {
      running--;
      return;
    }
    waiting.delete(next);
    next();
  }

  return {
    run: async (signal, work) => {
      await enter(signal);
      try {
        return await work();
      } finally {
        leave();
      }
    },
    counts: () => ({ running, waiting: waiting.size }),
  };
}
