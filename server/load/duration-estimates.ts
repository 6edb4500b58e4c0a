/** Estimates how long queries of each kind take, in milliseconds, from those that have ended. */

export type DurationEstimates = {
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

export function openDurationEstimates(): DurationEstimates {
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
