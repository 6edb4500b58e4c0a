/**
 * Lets work that is not answered from memory begin a few at a time, behind all that has come with it: an answer that is ready
 * never waits behind a crowd of others.
 */

/** Resolves when it is the caller's turn, in the order in which they came. */
export type TakeTurn = () => Promise<void>;

/** `most` is how many may begin in one turn of the event loop. */
export function openTurns(most: () => number): TakeTurn {
  const waiting: (() => void)[] = [];

  function begin(): void {
    for (const go of waiting.splice(0, most())) go();
    if (waiting.length > 0) setImmediate(begin);
  }

  return () => {
    // At the end of this turn of the event loop: what is read in it comes before.
    if (waiting.length === 0) setImmediate(begin);
    return new Promise((resolve) => waiting.push(resolve));
  };
}
