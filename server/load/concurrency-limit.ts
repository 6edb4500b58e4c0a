/**
 * How much slow work may run at once: additive increase, multiplicative decrease. Where too much does, each takes so long that
 * all of it is in vain: half as much may when some comes too late, and one more when as many as run have come in time.
 */
export type ConcurrencyLimit = {
  readonly places: () => number;
  readonly inTime: () => void;
  /** `since` when it began, in milliseconds as `now`. What began before the last cut was one too many then, and not now. */
  readonly tooLate: (since: number, now: number) => void;
};

export function openConcurrencyLimit(most: number): ConcurrencyLimit {
  let places = most;
  let good = 0;
  let cut = Number.NEGATIVE_INFINITY;

  return {
    places: () => places,
    inTime: () => {
      good++;
      if (good < places) return;
      places = Math.min(most, places + 1);
      good = 0;
    },
    tooLate: (since, now) => {
      if (since < cut) return;
      cut = now;
      places = Math.max(1, places >> 1);
      good = 0;
    },
  };
}
