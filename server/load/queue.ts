/**
 * The bound of live work: so much runs at once, so much waits for that in its order, and more is refused at once. Work of a
 * slow kind gets half of the places, so that the rest finds one; and nobody waits for what would come too late for him.
 */
import { DatabaseFault, notBegun } from "../../shared/database/fault.ts";
import { openConcurrencyLimit } from "./concurrency-limit.ts";
import { openPace } from "./pace.ts";

export type Queue = {
  /**
   * Work of the same kind takes about as long; null for what never takes long. Throws a DatabaseFault when too many wait
   * already, and when the signal aborts before the work has begun.
   */
  readonly run: <T>(signal: AbortSignal, kind: string | null, work: () => Promise<T>) => Promise<T>;
  /** Whether more of the kind would be refused. */
  readonly isFull: (kind: string | null) => boolean;
  readonly counts: () => { readonly running: number; readonly waiting: number };
};

export type QueueLimits = {
  readonly atOnce: number;
  readonly waiting: number;
  /** Milliseconds from when work is asked for to when it is given up, its waiting included. */
  readonly limit: number;
};

/** `alike` is how many of its kind have run at once meanwhile, at the most. */
type Running = { readonly kind: string | null; readonly since: number; alike: number };
type Waiting = { readonly kind: string | null; readonly begin: () => void };

/** The part of the limit from which on work is slow. */
const SLOW = 1 / 20;

export function openQueue({ atOnce, waiting: most, limit }: QueueLimits): Queue {
  const running = new Set<Running>();
  const waiting = new Set<Waiting>();
  const slow = limit * SLOW;
  const pace = openPace();
  const slowPlaces = openConcurrencyLimit(Math.ceil(atOnce / 2));

  /** Milliseconds: by those that have ended, and by those that run where all of them have run longer. */
  function expected(kind: string | null): number {
    if (kind === null) return 0;
    const now = performance.now();
    let youngest = 0;
    // They stand in the order in which they began.
    for (const one of running) if (one.kind === kind) youngest = now - one.since;
    return Math.max(pace.expected(kind), youngest);
  }

  const isSlow = (kind: string | null) => expected(kind) >= slow;
  const isKnownToBeSlow = (kind: string | null) => kind !== null && pace.expected(kind) >= slow;

  /** Milliseconds after which it would be too late to begin. */
  const enough = (kind: string | null) => Math.max(0, limit - expected(kind));

  /**
   * What begins has at least as much time left: with less, a database that hangs would do little but begin and cancel. Where it
   * is known how long a slow kind takes, that is the time that it needs.
   */
  function patienceOf(kind: string | null): number {
    return isKnownToBeSlow(kind) ? enough(kind) : Math.min(limit / 2, enough(kind));
  }

  function hasPlace(kind: string | null): boolean {
    if (running.size >= atOnce) return false;
    return !isSlow(kind) || count(running, isSlow) < slowPlaces.places();
  }

  /** Of slow work no more waits than will come in time. */
  function hasRoom(kind: string | null): boolean {
    if (waiting.size >= most) return false;
    if (!isSlow(kind)) return true;
    const rounds = enough(kind) / expected(kind);
    return count(waiting, (other) => other === kind) + 1 <= Math.min(most / 2, rounds * slowPlaces.places());
  }

  const isFull = (kind: string | null) => !hasPlace(kind) && !hasRoom(kind);

  function start(kind: string | null): Running {
    const place = { kind, since: performance.now(), alike: 0 };
    running.add(place);
    const together = count(running, (one) => one === kind);
    for (const one of running) if (one.kind === kind) one.alike = Math.max(one.alike, together);
    return place;
  }

  function enter(signal: AbortSignal, kind: string | null): Running | Promise<Running> {
    if (signal.aborted) throw notBegun();
    if (hasPlace(kind)) return start(kind);
    if (!hasRoom(kind)) throw new DatabaseFault("overloaded", "too many live queries wait");
    const since = performance.now();
    return new Promise((resolve, reject) => {
      const begin = () => {
        leaveLine();
        resolve(start(kind));
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
        const left = patienceOf(kind) - (performance.now() - since);
        if (left > 0) clock = setTimeout(look, left);
        else giveUp();
      };
      let clock = setTimeout(look, patienceOf(kind));
      signal.addEventListener("abort", giveUp, { once: true });
      waiting.add(waits);
    });
  }

  /** The place goes to whoever has waited longest, of those who may have it. */
  function leave(place: Running): void {
    running.delete(place);
    for (const { kind, begin } of waiting) {
      if (running.size >= atOnce) return;
      if (hasPlace(kind)) begin();
    }
  }

  /** Beside more of its kind than may run from now on, slow work has taken longer than the next will; but slow it is. */
  function nextOf(took: number, alike: number): number {
    const share = Math.min(1, slowPlaces.places() / alike);
    return took < slow ? took : Math.max(slow, took * share);
  }

  function learn({ kind, since, alike }: Running, isDone: boolean): void {
    if (kind === null) return;
    const now = performance.now();
    const took = now - since;
    if (isDone) pace.ended(kind, nextOf(took, alike));
    else pace.givenUp(kind, took);
    if (isDone && took >= slow) slowPlaces.inTime();
    // Else its client has gone away.
    if (!isDone && took >= limit / 2) slowPlaces.tooLate(since, now);
  }

  return {
    run: async (signal, kind, work) => {
      const place = await enter(signal, kind);
      try {
        const result = await work();
        learn(place, true);
        return result;
      } catch (error) {
        if (isGivenUp(error, signal)) learn(place, false);
        throw error;
      } finally {
        leave(place);
      }
    },
    isFull,
    counts: () => ({ running: running.size, waiting: waiting.size }),
  };
}

function count(some: Iterable<{ readonly kind: string | null }>, test: (kind: string | null) => boolean): number {
  let found = 0;
  for (const { kind } of some) if (test(kind)) found++;
  return found;
}

/** A database that is away says nothing of the work. */
function isGivenUp(error: unknown, signal: AbortSignal): boolean {
  return error instanceof DatabaseFault && error.reason === "timeout" && !(signal.reason instanceof DatabaseFault);
}
