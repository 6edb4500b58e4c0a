/** Estimates the number of distinct values from a sample. */

/** Number of distinct values in the sample, of those that occur once in it, and of occurrences of all values. */
export type Sample = { readonly values: number; readonly valuesSeenOnce: number; readonly occurrences: number };

/**
 * `totalOccurrences` is the number of occurrences of all values in the whole. Uses the estimator of PostgreSQL (Haas and Stokes,
 * "Duj1"): the more values occur once in the sample, the more values it lacks. Exact when the sample is complete.
 */
export function estimateDistinct({ values, valuesSeenOnce, occurrences }: Sample, totalOccurrences: number): number {
  return occurrences === 0
    ? 0
    : Math.round(
        (occurrences * values) / (occurrences - valuesSeenOnce + (valuesSeenOnce * occurrences) / totalOccurrences),
      );
}
