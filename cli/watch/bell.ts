/** A signal for one waiter that is remembered: when it is given while nobody waits, the next wait ends at once. */

export type Bell = {
  readonly ring: () => void;
  /** Resolves when the bell has rung since the last `hush`. */
  readonly rung: () => Promise<void>;
  /** Resets the bell, and returns whether it had rung. */
  readonly hush: () => boolean;
};

export function openBell(): Bell {
  let rang = false;
  let wake = () => {};
  return {
    ring: () => {
      rang = true;
      wake();
    },
    rung: () =>
      new Promise((resolve) => {
        wake = resolve;
        if (rang) resolve();
      }),
    hush: () => {
      const did = rang;
      rang = false;
      return did;
    },
  };
}
