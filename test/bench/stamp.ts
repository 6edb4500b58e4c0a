/** Ids, and timestamps of five years, for the content of the benchmarks. */
import type { Random } from "./random.ts";

export function uuid(random: Random): string {
  const hex = Array.from({ length: 4 }, () => random.bits().toString(16).padStart(8, "0")).join("");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-9${hex.slice(17, 20)}-${hex.slice(20)}`;
}

export const DAY = 24 * 60 * 60;
const START = Date.UTC(2021, 0, 1) / 1_000;
/** Five years. STEP has no divisor in common with it, so that no two numbers below it get the same second. */
const YEARS = 5 * 365 * DAY;
const STEP = 104_729;

/** Seconds of the epoch. */
export function instantOf(number: number): number {
  return START + ((number * STEP) % YEARS);
}

export function spell(seconds: number): string {
  return new Date(seconds * 1_000).toISOString();
}
