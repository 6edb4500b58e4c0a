/** Repeats a task for as long as the server runs, one run at a time. */

/**
 * Calls `run` with the number of the run, from 0. While a run lasts longer than the interval, the next ones are
 * skipped. Returns a function that stops the repetition and resolves when the current run has ended.
 */
export function repeat(
  milliseconds: number,
  run: (turn: number) => Promise<void>,
  onError: (error: unknown) => void,
): () => Promise<void> {
  let turn = 0;
  let running: Promise<void> | null = null;
  const timer = setInterval(() => {
    running ??= run(turn++)
      .catch(onError)
      .finally(() => {
        running = null;
      });
  }, milliseconds);
  return async () => {
    clearInterval(timer);
    await running;
  };
}
