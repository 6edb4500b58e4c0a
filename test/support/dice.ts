/** Random decisions that a seed repeats. */

export type Dice = {
  /** At least 0, less than `end`. */
  readonly number: (end: number) => number;
  readonly chance: (probability: number) => boolean;
  readonly pick: <T>(of: readonly T[]) => T;
};

/** Mulberry32. */
export function openDice(seed: number): Dice {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const number = (end: number) => Math.floor(next() * end);
  return { number, chance: (probability) => next() < probability, pick: (of) => of[number(of.length)] as never };
}
