/** The lines of a journal, each a sum of equal requests, and the sums of all of them. */
import { readFile } from "node:fs/promises";
import { setImmediate } from "node:timers/promises";
import * as v from "valibot";
import { APP_KEY } from "../../shared/catalog.ts";
import { isDate } from "../../shared/value.ts";

/** A counted request: app key, shape, status, and what it could have left out to be free (empty when nothing). */
export type CountedRequest = {
  readonly app: string;
  readonly shape: string;
  readonly status: number;
  readonly saving: string;
};
/** Number of equal requests on one day (UTC). */
export type Sum = CountedRequest & { readonly day: string; readonly count: number };

const LINES_PER_TURN = 50;

const LINE = v.object({
  app: v.pipe(v.string(), v.regex(APP_KEY)),
  day: v.pipe(v.string(), v.check(isDate)),
  shape: v.string(),
  status: v.pipe(v.number(), v.integer(), v.minValue(-(2 ** 31)), v.maxValue(2 ** 31 - 1)),
  saving: v.string(),
  count: v.pipe(v.number(), v.safeInteger(), v.minValue(1)),
});

/**
 * Reads the sums of a journal, and the number of lines that cannot be parsed. An incomplete last line is neither: its
 * request was never answered. The sums are sorted, so that two servers that add to the same rows cannot deadlock.
 */
export async function readJournal(path: string): Promise<{ readonly sums: readonly Sum[]; readonly broken: number }> {
  const lines = [...countEqual((await readFile(path, "utf8")).split("\n").slice(0, -1))];
  const totals = new Map<string, Sum>();
  let broken = 0;
  for (const [index, [line, times]] of lines.entries()) {
    const sum = readLine(line);
    if (sum === null) broken += times;
    else addTo(totals, sum, times);
    // Journals are read while requests are answered, and a long one must not hold those up.
    if (index % LINES_PER_TURN === 0) await setImmediate();
  }
  return { sums: [...totals].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, sum]) => sum), broken };
}

/** Most lines repeat others, so equal lines are counted and parsed only once. */
function countEqual(lines: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const line of lines) counts.set(line, (counts.get(line) ?? 0) + 1);
  return counts;
}

export function lineOf(sum: Sum): string {
  return `${JSON.stringify(sum)}\n`;
}

function readLine(text: string): Sum | null {
  try {
    return v.parse(LINE, JSON.parse(text));
  } catch {
    return null;
  }
}

function addTo(totals: Map<string, Sum>, { count, ...key }: Sum, times: number): void {
  const name = JSON.stringify([key.app, key.day, key.shape, key.status, key.saving]);
  totals.set(name, { ...key, count: count * times + (totals.get(name)?.count ?? 0) });
}
