/** Estimates how many different values there are from those of a part. */

/** Different values of the part, those of them that occur once, and how often any occurs. */
export type Sample = { readonly values: number; readonly singles: number; readonly held: number };

/**
 * `all` is how often any value occurs in the whole. As PostgreSQL estimates it (Haas and Stokes, "Duj1"): the more of the
 * part occurs once, the more is yet unseen. A part that is the whole is exact.
 */
export function estimateDistinct({ values, singles, held }: Sample, all: number): number {
  return held === 0 ? 0 : Math.round((held * values) / (held - singles + (singles * held) / all));
}
