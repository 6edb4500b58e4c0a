/** A mutex: what needs the one connection waits for its turn. */
import { notBegun } from "../fault.ts";

export type Mutex = <T>(run: () => Promise<T>, signal?: AbortSignal) => Promise<T>;

/**
 * Runs one thing after the other, in the order in which they were asked for; one that fails holds up none. What its
 * signal aborts before it has begun is a fault at once, and does not begin.
 */
export function openMutex(): Mutex {
  let last: Promise<unknown> = Promise.resolve();
  return (run, signal) => {
    if (signal?.aborted) return Promise.reject(notBegun());
    let giveUp = () => {};
    const waited = new Promise<never>((_, reject) => {
      giveUp = () => reject(notBegun());
    });
    waited.catch(() => {});
    signal?.addEventListener("abort", giveUp, { once: true });
    const mine = last.then(() => {
      signal?.removeEventListener("abort", giveUp);
      if (signal?.aborted) throw notBegun();
      return run();
    });
    last = mine.catch(() => {});
    return signal === undefined ? mine : Promise.race([mine, waited]);
  };
}
