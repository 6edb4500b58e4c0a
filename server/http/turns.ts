/**
 * Begins requests that are not answered from memory a few at a time, after everything else that arrived with them. An
 * answer that is ready never waits behind a crowd of others.
 */

/** Resolves when it is the caller's turn. Turns are given in the order of the calls. */
export type TakeTurn = () => Promise<void>;

/** `most` returns how many may begin in one turn of the event loop. */
export function openTurns(most: () => number): TakeTurn {
  const waiting: (() => void)[] = [];

  function begin(): void {
    for (const go of waiting.splice(0, most())) go();
    if (waiting.length > 0) setImmediate(begin);
  }

  return () => {
    // Runs at the end of this turn of the event loop, after the requests that are read in it.
    if (waiting.length === 0) setImmediate(begin);
    return new Promise((resolve) => waiting.push(resolve));
  };
}
