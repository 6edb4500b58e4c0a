/**
 * The places in which live work runs, half of which slow work may have, so that the rest finds one. How long a kind takes is
 * learned from what ran there.
 */
import { openConcurrencyLimit } from "./concurrency-limit.ts";
import { openPace } from "./pace.ts";

export type Places = {
  /** Whether work of the kind may begin. */
  readonly isFree: (kind: Kind) => boolean;
  readonly take: (kind: Kind) => Place;
  readonly leave: (place: Place) => void;
  /** Tells whether the work of a place was done, or given up because it took so long. */
  readonly learn: (place: Place, isDone: boolean) => void;
  readonly running: () => number;
  readonly isSlow: (kind: Kind) => boolean;
  /** Milliseconds that work of the kind may wait. */
  readonly patience: (kind: Kind) => number;
  /** How much slow work of the kind will be done in time, at the most. */
  readonly inTime: (kind: Kind) => number;
};

/** Null for work that never takes long. */
export type Kind = string | null;
/** `alike` is how many of its kind have run at once meanwhile, at the most. */
export type Place = { readonly kind: Kind; readonly since: number; alike: number };

/** The part of the limit from which on work is slow. */
const SLOW = 1 / 20;

/** `limit` is in milliseconds. */
export function openPlaces(atOnce: number, limit: number): Places {
  const running = new Set<Place>();
  const slow = limit * SLOW;
  const pace = openPace();
  const slowPlaces = openConcurrencyLimit(Math.ceil(atOnce / 2));

  /** Milliseconds: by those that have ended, and by those that run where all of them have run longer. */
  function expected(kind: Kind): number {
    if (kind === null) return 0;
    const now = performance.now();
    let youngest = 0;
    // They stand in the order in which they began.
    for (const one of running) if (one.kind === kind) youngest = now - one.since;
    return Math.max(pace.expected(kind), youngest);
  }

  const isSlow = (kind: Kind) => expected(kind) >= slow;
  const isKnownToBeSlow = (kind: Kind) => kind !== null && pace.expected(kind) >= slow;
  /** Milliseconds after which it would be too late to begin. */
  const enough = (kind: Kind) => Math.max(0, limit - expected(kind));

  /** Beside more of its kind than may run from now on, slow work has taken longer than the next will; but slow it is. */
  function nextOf(took: number, alike: number): number {
    const share = Math.min(1, slowPlaces.places() / alike);
    return took < slow ? took : Math.max(slow, took * share);
  }

  return {
    isFree: (kind) => {
      if (running.size >= atOnce) return false;
      return !isSlow(kind) || count(running, isSlow) < slowPlaces.places();
    },
    take: (kind) => {
      const place = { kind, since: performance.now(), alike: 0 };
      running.add(place);
      const together = count(running, (other) => other === kind);
      for (const one of running) if (one.kind === kind) one.alike = Math.max(one.alike, together);
      return place;
    },
    leave: (place) => void running.delete(place),
    learn: ({ kind, since, alike }, isDone) => {
      if (kind === null) return;
      const now = performance.now();
      const took = now - since;
      if (isDone) pace.ended(kind, nextOf(took, alike));
      else pace.givenUp(kind, took);
      if (isDone && took >= slow) slowPlaces.inTime();
      // Else its client has gone away.
      if (!isDone && took >= limit / 2) slowPlaces.tooLate(since, now);
    },
    running: () => running.size,
    isSlow,
    /**
     * What begins has at least as much time left: with less, a database that hangs would do little but begin and cancel. Where it
     * is known how long a slow kind takes, that is the time that it needs.
     */
    patience: (kind) => (isKnownToBeSlow(kind) ? enough(kind) : Math.min(limit / 2, enough(kind))),
    inTime: (kind) => (enough(kind) / expected(kind)) * slowPlaces.places(),
  };
}

export function count(some: Iterable<{ readonly kind: Kind }>, test: (kind: Kind) => boolean): number {
  let found = 0;
  for (const { kind } of some) if (test(kind)) found++;
  return found;
}
