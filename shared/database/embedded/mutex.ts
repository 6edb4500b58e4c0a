/** A mutex: tasks that need the only connection wait for their turn. */
import { notBegunFault } from "../fault.ts";

export type Mutex = <T>(run: () => Promise<T>, signal?: AbortSignal) => Promise<T>;

/**
 * Runs tasks one after the other, in the order of the calls; a task that fails does not block the next. A task whose
 * signal aborts before it has begun rejects at once with a DatabaseFault `overloaded`, and never runs.
 */
export function openMutex(): Mutex {
  let last: Promise<unknown> = Promise.resolve();
  return (run, signal) => {
    if (signal?.aborted) return Promise.reject(notBegunFault());
    let giveUp = () => {};
    const waited = new Promise<never>((_, reject) => {
      giveUp = () => reject(notBegunFault());
    });
    waited.catch(() => {});
    signal?.addEventListener("abort", giveUp, { once: true });
    const mine = last.then(() => {
      signal?.removeEventListener("abort", giveUp);
      if (signal?.aborted) throw notBegunFault();
      return run();
    });
    last = mine.catch(() => {});
    return signal === undefined ? mine : Promise.race([mine, waited]);
  };
}
