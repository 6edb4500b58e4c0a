/** A signal for one waiter that is remembered: when it is given while nobody waits, the next wait ends at once. */

export type Wakeup = {
  readonly signal: () => void;
  /** Resolves when the signal was given since the last `reset`. */
  readonly wait: () => Promise<void>;
  /** Resets the signal, and returns whether it had been given. */
  readonly reset: () => boolean;
};

export function openWakeup(): Wakeup {
  let isSet = false;
  let wake = () => {};
  return {
    signal: () => {
      isSet = true;
      wake();
    },
    wait: () =>
      new Promise((resolve) => {
        wake = resolve;
        if (isSet) resolve();
      }),
    reset: () => {
      const wasSet = isSet;
      isSet = false;
      return wasSet;
    },
  };
}
