/** Counts workers that died young, one after another, and says how long to wait before the next one is started. */

export type EarlyDeaths = {
  /** Notes a death. `age` is the time since the worker was started, in milliseconds. */
  readonly note: (age: number) => void;
  readonly areTooMany: () => boolean;
  /** Milliseconds: none after the first death, then longer with each. */
  readonly pause: () => number;
};

/** Milliseconds. The death of a worker that lived longer is not caused by the way it was started. */
const LONG_LIFE = 5_000;
const FIRST_PAUSE = 100;
const LONGEST_PAUSE = 5_000;
export const MAX_DEATHS = 5;

export function openEarlyDeaths(): EarlyDeaths {
  let inRow = 0;
  return {
    note: (age) => {
      inRow = age < LONG_LIFE ? inRow + 1 : 0;
    },
    areTooMany: () => inRow >= MAX_DEATHS,
    pause: () => (inRow <= 1 ? 0 : Math.min(FIRST_PAUSE * 2 ** (inRow - 2), LONGEST_PAUSE)),
  };
}
