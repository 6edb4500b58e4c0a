/** Runs recurring tasks that may fail: a failure stops no other task, and is reported once until the task succeeds. */

/** `what` names the task; failures are reported once for each name. */
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
