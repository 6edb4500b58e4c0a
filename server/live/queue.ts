/** The bound of live work: so much runs at once, so much waits for that in its order, and more is refused at once. */
import { DatabaseFault, notBegun } from "../../shared/database/fault.ts";

export type Queue = {
  /** Throws a DatabaseFault when too many wait already, and when the signal aborts before the work has begun. */
  readonly run: <T>(signal: AbortSignal, work: () => Promise<T>) => Promise<T>;
  /** Whether more would be refused. */
  readonly isFull: () => boolean;
  readonly counts: () => { readonly running: number; readonly waiting: number };
};

export type QueueLimits = {
  readonly atOnce: number;
  readonly waiting: number;
  /** Milliseconds. Who has waited so long is refused. */
  readonly patience: number;
};

export function openQueue(limits: QueueLimits): Queue {
  let running = 0;
  const waiting = new Set<() => void>();
  const isFull = () => running >= limits.atOnce && waiting.size >= limits.waiting;

  function enter(signal: AbortSignal): Promise<void> {
    if (signal.aborted) throw notBegun();
    if (running < limits.atOnce) {
      running++;
      return Promise.resolve();
    }
    if (isFull()) throw new DatabaseFault("overloaded", "too many live queries wait");
    return new Promise((resolve, reject) => {
      const begin = () => {
        leaveLine();
        resolve();
      };
      const giveUp = () => {
        leaveLine();
        reject(notBegun());
      };
      const leaveLine = () => {
        waiting.delete(begin);
        clearTimeout(limit);
        signal.removeEventListener("abort", giveUp);
      };
      const limit = setTimeout(giveUp, limits.patience);
      signal.addEventListener("abort", giveUp, { once: true });
      waiting.add(begin);
    });
  }

  /** The place goes to whoever has waited longest. */
  function leave(): void {
    const [next] = waiting;
    if (next === undefined) running--;
    else next();
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
    isFull,
    counts: () => ({ running, waiting: waiting.size }),
  };
}
