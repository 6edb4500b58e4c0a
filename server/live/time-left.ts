/**
 * Decides which requests may share work by the time that they have left: one that has waited must not pass its short
 * remaining time on to a new one.
 */

/** Requests share such work only if their remaining times are the same in tenths of the limit. Milliseconds. */
export function tenthsLeft(left: number, limit: number): number {
  return Math.ceil((10 * left) / limit);
}
