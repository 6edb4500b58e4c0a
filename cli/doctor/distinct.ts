/** Estimates the number of distinct values from a sample. */

/** Number of distinct values in the sample, of those that occur once in it, and of occurrences of all values. */
export type Sample = { readonly values: number; readonly singles: number; readonly held: number };

/**
 * `all` is the number of occurrences of all values in the whole. Uses the estimator of PostgreSQL (Haas and Stokes,
 * "Duj1"): the more values occur once in the sample, the more values it lacks. Exact when the sample is complete.
 */
export function estimateDistinct({ values, singles, held }: Sample, all: number): number {
  return held === 0 ? 0 : Math.round((held * values) / (held - singles + (singles * held) / all));
}
