/** What a server does again and again for as long as it runs, one turn at a time. */

/** A turn that is late makes the next ones fall out. Gives what ends it, behind the turn that runs. */
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
