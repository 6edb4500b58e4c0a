/**
 * Lets work that is not answered from memory begin a few at a time, and looks between those at what else has come: an
 * answer that is ready never waits behind a crowd of others.
 */

/** Resolves when it is the caller's turn: at once, unless many have had theirs in the same turn of the event loop. */
export type TakeTurn = () => Promise<void>;

const AT_ONCE = 8;

export function openTurns(atOnce = AT_ONCE): TakeTurn {
  const waiting: (() => void)[] = [];
  let left = atOnce;
  let awaitsNext = false;

  function begin(): void {
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
