/** How far a replica is behind: what it has of the primary's log, against where that log ended at which time. */

/** Where the log of the primary ended, at a reading of `performance.now()`. */
export type Mark = { readonly time: number; readonly position: bigint };

/**
 * Marks in the order of both time and position, those of the last `window` milliseconds. Of a log that stands still the
 * latest mark says the most. One that goes back is that of another server, which has never been where the old one was.
 */
export function addMark(marks: readonly Mark[], mark: Mark, window: number): readonly Mark[] {
  return [...marks.filter(({ time, position }) => position < mark.position && time > mark.time - window), mark];
}

/** For how many milliseconds, at most, a server that has this much lacks something; null where no mark proves it. */
export function lagOf(marks: readonly Mark[], position: bigint, now: number): number | null {
  const mark = marks.findLast((one) => one.position <= position);
  return mark === undefined ? null : now - mark.time;
}
