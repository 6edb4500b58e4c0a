/**
 * Limits how many slow queries run at once, by additive increase and multiplicative decrease. Too many at once slow
 * each other down until all time out. The limit is halved when a query is too late, and grows by one when as many as it
 * allows were in time.
 */
export type ConcurrencyLimit = {
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
