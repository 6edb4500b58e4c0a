/** Pseudo-random numbers that are the same in every run: the generator sfc32, seeded by a whole number. */

export type Random = {
  /** A whole number from 0 to 2^32 - 1. */
  readonly bits: () => number;
  /** A whole number below the limit. */
  readonly below: (limit: number) => number;
  readonly pick: <T>(all: readonly T[]) => T;
};

const WARM_UP = 12;

export function randomFrom(seed: number): Random {
  let a = seed >>> 0;
  let b = 0x9e3779b9;
  let c = 0x243f6a88;
  let counter = 1;
  const bits = (): number => {
    const sum = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return sum >>> 0;
  };
  for (let round = 0; round < WARM_UP; round++) bits();
  const below = (limit: number) => Math.floor((bits() / 2 ** 32) * limit);
  return { bits, below, pick: (all) => all[below(all.length)] as (typeof all)[number] };
}
