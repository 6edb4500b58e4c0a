/** A bell that is remembered: when it rings while nobody waits, the next who waits need not. */

export type Bell = {
  readonly ring: () => void;
  /** Resolves when it has rung since it was last hushed. */
  readonly rung: () => Promise<void>;
  /** Forgets that it rang, and says whether it did. */
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
