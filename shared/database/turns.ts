/** Makes what needs one connection wait for its turn. */

/** Runs one thing after the other, in the order in which they were asked for; one that fails holds up none. */
export function takeTurns(): <T>(run: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (run) => {
    const mine = last.then(run, run);
    last = mine.catch(() => {});
    return mine;
  };
}
