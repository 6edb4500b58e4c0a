/** What has been asked over a line and waits for its answer: answers come in any order, by number. */

export type Pending<T> = {
  /** A number that nothing else has had. */
  readonly next: () => number;
  readonly answerTo: (id: number) => Promise<T>;
  /** What nobody waits for any more is passed over. */
  readonly resolve: (id: number, answer: T) => void;
  readonly reject: (id: number, error: unknown) => void;
  readonly rejectAll: (error: unknown) => void;
};

export function openPending<T>(): Pending<T> {
  const waiting = new Map<number, { resolve: (answer: T) => void; reject: (error: unknown) => void }>();
  let last = 0;

  function take(id: number) {
    const asked = waiting.get(id);
    waiting.delete(id);
    return asked;
  }

  return {
    next: () => ++last,
    answerTo: (id) => new Promise((resolve, reject) => void waiting.set(id, { resolve, reject })),
    resolve: (id, answer) => take(id)?.resolve(answer),
    reject: (id, error) => take(id)?.reject(error),
    rejectAll: (error) => {
      for (const { reject } of waiting.values()) reject(error);
      waiting.clear();
    },
  };
}
