/** Tracks requests that wait for their answers, which arrive in any order and name the request by its id. */

export type Pending<T> = {
  /** A request id that has not been used before. */
  readonly next: () => number;
  readonly answerTo: (id: number) => Promise<T>;
  /** Ignored, like `reject`, when no request with this id is waiting. */
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
