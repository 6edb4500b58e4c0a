/**
 * Bounds live work: limits how many queries run at once and how many wait in order, and refuses more at once. A query
 * that could not complete in time any more does not wait.
 */
import { DatabaseFault, notBegunFault } from "../../shared/database/fault.ts";
import { count, type Kind, openPlaces, type Place } from "./places.ts";

export type Queue = {
  /**
   * Runs the work when a place is free. Work of the same kind takes about as long. Throws an `overloaded` DatabaseFault
   * when too many wait already, and when the work has waited too long or the signal aborts before it has begun.
   */
  readonly run: <T>(signal: AbortSignal, kind: Kind, work: () => Promise<T>) => Promise<T>;
  /** Whether more work of the kind would be refused. */
  readonly isFull: (kind: Kind) => boolean;
  readonly counts: () => { readonly running: number; readonly waiting: number };
};

export type QueueLimits = {
  readonly atOnce: number;
  readonly waiting: number;
  /** Milliseconds after which work is given up, including the time that it waits. */
  readonly limit: number;
};

type Waiting = { readonly kind: Kind; readonly begin: () => void };

export function openQueue({ atOnce, waiting: most, limit }: QueueLimits): Queue {
  const places = openPlaces(atOnce, limit);
  const waiting = new Set<Waiting>();

  /** No more slow work waits, of whatever kinds, than can complete in time. */
  function hasRoom(kind: Kind): boolean {
    if (waiting.size >= most) return false;
    if (!places.isSlow(kind)) return true;
    return count(waiting, places.isSlow) + 1 <= Math.min(most / 2, places.maxQueued(kind));
  }

  function enter(signal: AbortSignal, kind: Kind): Place | Promise<Place> {
    if (signal.aborted) throw notBegunFault();
    if (places.isFree(kind)) return places.take(kind);
    if (!hasRoom(kind)) throw new DatabaseFault("overloaded", "too many live queries are waiting");
    const since = performance.now();
    return new Promise((resolve, reject) => {
      const begin = () => {
        leaveQueue();
        resolve(places.take(kind));
      };
      const giveUp = () => {
        leaveQueue();
        reject(notBegunFault());
      };
      const entry: Waiting = { kind, begin };
      const leaveQueue = () => {
        waiting.delete(entry);
        clearTimeout(timer);
        signal.removeEventListener("abort", giveUp);
      };
      // The expected duration of the kind may have changed meanwhile.
      const checkWait = () => {
        const left = places.maxWait(kind) - (performance.now() - since);
        if (left > 0) timer = setTimeout(checkWait, left);
        else giveUp();
      };
      let timer = setTimeout(checkWait, places.maxWait(kind));
      signal.addEventListener("abort", giveUp, { once: true });
      waiting.add(entry);
    });
  }

  /** Gives free places to the work that has waited longest, among the work that may begin. */
  function leave(place: Place): void {
    places.leave(place);
    for (const { kind, begin } of waiting) {
      if (places.running() >= atOnce) return;
      if (places.isFree(kind)) begin();
    }
  }

  return {
    run: async (signal, kind, work) => {
      const place = await enter(signal, kind);
      try {
        const result = await work();
        places.learn(place, true);
        return result;
      } catch (error) {
        if (isGivenUp(error, signal)) places.learn(place, false);
        throw error;
      } finally {
        leave(place);
      }
    },
    isFull: (kind) => !places.isFree(kind) && !hasRoom(kind),
    counts: () => ({ running: places.running(), waiting: waiting.size }),
  };
}

/** Work that ends because the database became unavailable says nothing about its duration. */
function isGivenUp(error: unknown, signal: AbortSignal): boolean {
  return error instanceof DatabaseFault && error.reason === "timeout" && !(signal.reason instanceof DatabaseFault);
}
