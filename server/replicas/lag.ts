/** Computes how far a replica is behind, from its log position and where the primary's log ended at known times. */

/** Where the primary's log ended at `time`, a performance.now(). */
export type Mark = { readonly time: number; readonly position: bigint };

/**
 * Adds a mark and drops those older than `window` milliseconds. Marks stay in order of both time and position. Of marks
 * with the same position only the latest is kept, as it proves the most. Marks with a higher position are dropped: the
 * log is then that of another server, which has never reached them.
 */
export function addMark(marks: readonly Mark[], mark: Mark, window: number): readonly Mark[] {
  return [...marks.filter(({ time, position }) => position < mark.position && time > mark.time - window), mark];
}

/** Maximum lag in milliseconds of a server at this position; null when no mark proves a maximum. */
export function lagOf(marks: readonly Mark[], position: bigint, now: number): number | null {
  const mark = marks.findLast((one) => one.position <= position);
  return mark === undefined ? null : now - mark.time;
}

/**
 * Whether the primary, after `time`, had not yet written the log up to this position: a server that had replayed it by
 * then does not follow this primary.
 */
export function isBeyond(marks: readonly Mark[], position: bigint, time: number): boolean {
  const last = marks.at(-1);
  return last !== undefined && last.time > time && last.position < position;
}
