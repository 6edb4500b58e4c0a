/**
 * Manages the places in which live queries run, one query in each. Slow queries get at most half of them, so that fast
 * ones find one. Which kinds are slow is learned from the queries that ran.
 */
import { openConcurrencyLimit } from "./concurrency-limit.ts";
import { openDurationEstimates } from "./duration-estimates.ts";

export type Places = {
  /** Whether work of the kind may begin now. */
  readonly isFree: (kind: Kind) => boolean;
  readonly take: (kind: Kind) => Place;
  readonly leave: (place: Place) => void;
  /** Records whether the work of a place completed, or was cancelled: for its duration, or because its client left. */
  readonly learn: (place: Place, isDone: boolean) => void;
  readonly running: () => number;
  readonly isSlow: (kind: Kind) => boolean;
  /** Maximum time that work of the kind may wait, in milliseconds. */
  readonly maxWait: (kind: Kind) => number;
  /** Maximum number of queries of a slow kind that can wait and still complete in time. */
  readonly maxQueued: (kind: Kind) => number;
};

/** Work of one kind takes about as long (live/kind.ts). Null for work that never takes long. */
export type Kind = string | null;
/** `since` is a performance.now(). `peers` is the maximum number of its kind, itself included, that ran meanwhile. */
export type Place = { readonly kind: Kind; readonly since: number; peers: number };

/** Work that takes at least this fraction of the limit is slow. */
const SLOW = 1 / 20;

/** `atOnce` is the number of places; `limit` is the time limit for an answer, in milliseconds. */
export function openPlaces(atOnce: number, limit: number): Places {
  const running = new Set<Place>();
  const slow = limit * SLOW;
  const estimates = openDurationEstimates();
  const slowPlaces = openConcurrencyLimit(Math.ceil(atOnce / 2));

  /** Expected milliseconds: learned from ended work, or more if all running work of the kind has already taken more. */
  function expected(kind: Kind): number {
    if (kind === null) return 0;
    const now = performance.now();
    let youngest = 0;
    // The set is in order of start, so the last one is the youngest.
    for (const one of running) if (one.kind === kind) youngest = now - one.since;
    return Math.max(estimates.expected(kind), youngest);
  }

  const isSlow = (kind: Kind) => expected(kind) >= slow;
  const isUnknown = (kind: Kind) => kind !== null && !estimates.isKnown(kind);
  /**
   * If an unknown kind turns out to be slow, more of it than this would make all of it too late. Two at least, so that
   * a single one that hangs does not hold up the others.
   */
  const mostUnknown = () => Math.max(2, slowPlaces.places());
  const isKnownToBeSlow = (kind: Kind) => kind !== null && estimates.expected(kind) >= slow;
  /** Milliseconds after which the work could no longer complete within the limit. */
  const slack = (kind: Kind) => Math.max(0, limit - expected(kind));

  /**
   * Slow work that ran beside more of its kind than may run now took longer than the next will, but that is slow too.
   */
  function expectedNext(took: number, peers: number): number {
    const share = Math.min(1, slowPlaces.places() / peers);
    return took < slow ? took : Math.max(slow, took * share);
  }

  return {
    isFree: (kind) => {
      if (running.size >= atOnce) return false;
      if (isSlow(kind)) return count(running, isSlow) < slowPlaces.places();
      return !isUnknown(kind) || count(running, (other) => other === kind) < mostUnknown();
    },
    take: (kind) => {
      const place = { kind, since: performance.now(), peers: 0 };
      running.add(place);
      const together = count(running, (other) => other === kind);
      for (const one of running) if (one.kind === kind) one.peers = Math.max(one.peers, together);
      return place;
    },
    leave: (place) => void running.delete(place),
    learn: ({ kind, since, peers }, isDone) => {
      if (kind === null) return;
      const now = performance.now();
      const took = now - since;
      if (isDone) estimates.ended(kind, expectedNext(took, peers));
      else estimates.givenUp(kind, took);
      if (isDone && took >= slow) slowPlaces.completedInTime();
      // Work that was cancelled sooner is ignored: its client may have left, or it began late.
      if (!isDone && took >= limit / 2) slowPlaces.tooLate(since, now);
    },
    running: () => running.size,
    isSlow,
    /**
     * Work begins with at least half of the limit left: with less, a database that hangs would mostly start and cancel
     * queries. A kind known to be slow needs only its expected duration.
     */
    maxWait: (kind) => (isKnownToBeSlow(kind) ? slack(kind) : Math.min(limit / 2, slack(kind))),
    maxQueued: (kind) => (slack(kind) / expected(kind)) * slowPlaces.places(),
  };
}

export function count(some: Iterable<{ readonly kind: Kind }>, test: (kind: Kind) => boolean): number {
  let found = 0;
  for (const { kind } of some) if (test(kind)) found++;
  return found;
}
