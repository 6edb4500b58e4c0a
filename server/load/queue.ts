/**
 * The bound of live work: so much runs at once, so much waits for that in its order, and more is refused at once. Nobody waits for
 * what would come too late for him.
 */
import { DatabaseFault, notBegun } from "../../shared/database/fault.ts";
import { count, type Kind, openPlaces, type Place } from "./places.ts";

export type Queue = {
  /**
   * Work of the same kind takes about as long. Throws a DatabaseFault when too many wait already, and when the signal aborts
   * before the work has begun.
   */
  readonly run: <T>(signal: AbortSignal, kind: Kind, work: () => Promise<T>) => Promise<T>;
  /** Whether more of the kind would be refused. */
  readonly isFull: (kind: Kind) => boolean;
  readonly counts: () => { readonly running: number; readonly waiting: number };
};

export type QueueLimits = {
  readonly atOnce: number;
  readonly waiting: number;
  /** Milliseconds from when work is asked for to when it is given up, its waiting included. */
  readonly limit: number;
};

type Waiting = { readonly kind: Kind; readonly begin: () => void };

export function openQueue({ atOnce, waiting: most, limit }: QueueLimits): Queue {
  const places = openPlaces(atOnce, limit);
  const waiting = new Set<Waiting>();

  /** Of slow work no more waits than will come in time. */
  function hasRoom(kind: Kind): boolean {
    if (waiting.size >= most) return false;
    if (!places.isSlow(kind)) return true;
    return count(waiting, (other) => other === kind) + 1 <= Math.min(most / 2, places.inTime(kind));
  }

  function enter(signal: AbortSignal, kind: Kind): Place | Promise<Place> {
    if (signal.aborted) throw notBegun();
    if (places.isFree(kind)) return places.take(kind);
    if (!hasRoom(kind)) throw new DatabaseFault("overloaded", "too many live queries wait");
    const since = performance.now();
    return new Promise((resolve, reject) => {
      const begin = () => {
        leaveLine();
        resolve(places.take(kind));
      };
      const giveUp = () => {
        leaveLine();
        reject(notBegun());
      };
      const waits: Waiting = { kind, begin };
      const leaveLine = () => {
        waiting.delete(waits);
        clearTimeout(clock);
        signal.removeEventListener("abort", giveUp);
      };
      // How long its kind takes may have become known meanwhile.
      const look = () => {
        const left = places.patience(kind) - (performance.now() - since);
        if (left > 0) clock = setTimeout(look, left);
        else giveUp();
      };
      let clock = setTimeout(look, places.patience(kind));
      signal.addEventListener("abort", giveUp, { once: true });
      waiting.add(waits);
    });
  }

  /** The place goes to whoever has waited longest, of those who may have it. */
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

/** A database that is away says nothing of the work. */
function isGivenUp(error: unknown, signal: AbortSignal): boolean {
  return error instanceof DatabaseFault && error.reason === "timeout" && !(signal.reason instanceof DatabaseFault);
}
