/** Decides which requests may share work that has one time limit: one that has waited must not shorten a new one's. */

/** Requests share such work only if their remaining times are the same in tenths of the limit. Milliseconds. */
export function tenthsLeft(left: number, limit: number): number {
  return Math.ceil((10 * left) / limit);
}
