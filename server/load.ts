/**
 * Bounds live work: limits how many queries run at once and how many wait in order, and refuses more at once. A query
 * that could not complete in time any more does not wait.
 */
import type { Condition } from "../shared/api/filter.ts";
import type { ListPlan, Plan, SearchPlan } from "../shared/api/plan.ts";
import { lengthOf } from "../shared/api/value.ts";
import { DatabaseFault, notBegunFault } from "../shared/database/fault.ts";
import { INDEXED_LENGTH } from "../shared/sql/conditions.ts";

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

type QueueLimits = {
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

// Manages the places in which live queries run, one query in each. Slow queries get at most half of them, so that
// fast ones find one. Which kinds are slow is learned from the queries that ran.

type Places = {
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
type Place = { readonly kind: Kind; readonly since: number; peers: number };

/** Work that takes at least this fraction of the limit is slow. */
const SLOW = 1 / 20;

/** `atOnce` is the number of places; `limit` is the time limit for an answer, in milliseconds. */
function openPlaces(atOnce: number, limit: number): Places {
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

function count(some: Iterable<{ readonly kind: Kind }>, test: (kind: Kind) => boolean): number {
  let found = 0;
  for (const { kind } of some) if (test(kind)) found++;
  return found;
}

// Estimates how long queries of each kind take, in milliseconds, from those that have ended.

type DurationEstimates = {
  /** Whether a query of this kind has ended yet, or was given up. */
  readonly isKnown: (kind: string) => boolean;
  /** Expected duration in milliseconds; 0 for an unknown kind. */
  readonly expected: (kind: string) => number;
  readonly ended: (kind: string, took: number) => void;
  /** For a query that was given up after `took` milliseconds: it would have taken longer. */
  readonly givenUp: (kind: string, took: number) => void;
};

/** Divisor of steps to a shorter estimate: when the whole database was slow for a while, a few answers correct that. */
const SHORTER_DIVISOR = 2;
/** Divisor of steps to a longer estimate: a single slow answer says little about the next one. */
const LONGER_DIVISOR = 8;
/** Maximum number of kinds, rarely reached. Beyond it all estimates are dropped and learned anew. */
const MAX_KINDS = 10_000;

function openDurationEstimates(): DurationEstimates {
  const known = new Map<string, number>();
  const expected = (kind: string) => known.get(kind) ?? 0;

  function learn(kind: string, duration: number): void {
    if (known.size >= MAX_KINDS && !known.has(kind)) known.clear();
    known.set(kind, duration);
  }

  return {
    isKnown: (kind) => known.has(kind),
    expected,
    ended: (kind, took) => {
      const before = known.has(kind) ? expected(kind) : took;
      learn(kind, before + (took - before) / (took < before ? SHORTER_DIVISOR : LONGER_DIVISOR));
    },
    givenUp: (kind, took) => learn(kind, Math.max(expected(kind), took)),
  };
}

/**
 * Limits how many slow queries run at once, by additive increase and multiplicative decrease. Too many at once slow
 * each other down until all time out. The limit is halved when a query is too late, and grows by one when as many as it
 * allows were in time.
 */
type ConcurrencyLimit = {
  readonly places: () => number;
  readonly completedInTime: () => void;
  /**
   * `since` is when the query began and `now` when it was given up, in milliseconds of one clock. A query that began
   * before the last cut changes nothing: that cut was made for it too.
   */
  readonly tooLate: (since: number, now: number) => void;
};

export function openConcurrencyLimit(most: number): ConcurrencyLimit {
  let places = most;
  let inTimeCount = 0;
  let cutAt = Number.NEGATIVE_INFINITY;

  return {
    places: () => places,
    completedInTime: () => {
      inTimeCount++;
      if (inTimeCount < places) return;
      places = Math.min(most, places + 1);
      inTimeCount = 0;
    },
    tooLate: (since, now) => {
      if (since < cutAt) return;
      cutAt = now;
      places = Math.max(1, places >> 1);
      inTimeCount = 0;
    },
  };
}

// Groups live queries that take about the same time into kinds: by content type, fields of filters and sort, order of
// magnitude of the page's depth, and length of the shortest search word (no index serves words of one or two
// letters).

export function kindOf(plan: Plan): string {
  switch (plan.kind) {
    case "catalog":
      return plan.kind;
    case "schema":
    case "entry":
      return `${plan.kind} ${plan.type.slug}`;
    case "list":
      return pageKindOf(plan);
    case "search":
      return `${pageKindOf(plan)} ${Math.min(INDEXED_LENGTH, ...plan.words.map(lengthOf))}`;
  }
}

function pageKindOf({ kind, type, conditions, sort, page, perPage }: ListPlan | SearchPlan): string {
  const order = sort === null ? "" : `${sort.descending ? "-" : ""}${sort.column.name}`;
  const digits = String(page * BigInt(perPage)).length;
  return `${kind} ${type.slug} ${conditions.map(nameOf).join(",")} ${order} ${digits}`;
}

function nameOf(condition: Condition): string {
  const { kind, column } = condition;
  return `${column.name} ${kind === "equals" ? `${kind} ${condition.negated}` : condition.operator}`;
}
