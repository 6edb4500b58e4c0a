/**
 * Lets work that is not answered from memory begin a few at a time, and looks between those at what else has come: an
 * answer that is ready never waits behind a crowd of others.
 */

/** Resolves when it is the caller's turn: at once, unless many have had theirs in the same turn of the event loop. */
export type TakeTurn = () => Promise<void>;

/** `most` is how many may begin in one turn of the event loop. */
export function openTurns(most: () => number): TakeTurn {
  const waiting: (() => void)[] = [];
  let left = most();
  let awaitsNext = false;

  function begin(): void {
    const atOnce = most();
    left = Math.max(0, atOnce - waiting.length);
    for (const go of waiting.splice(0, atOnce)) go();
    awaitsNext = left < atOnce;
    if (awaitsNext) setImmediate(begin);
  }

  return () => {
    if (!awaitsNext) setImmediate(begin);
    awaitsNext = true;
    if (left === 0) return new Promise((resolve) => waiting.push(resolve));
    left--;
    return Promise.resolve();
  };
}
