/** What is done again and again, and may fail: that keeps nothing else from being done, and is told once, until it goes well. */

/** `what` tells apart what may fail by itself. */
export type Attempt = (what: string, effect: () => Promise<unknown>) => Promise<void>;

export function openAttempts(onError: (error: unknown) => void): Attempt {
  const failing = new Set<string>();

  return async (what, effect) => {
    try {
      await effect();
      failing.delete(what);
    } catch (error) {
      if (!failing.has(what)) onError(error);
      failing.add(what);
    }
  };
}
