/** Adds up counted requests: by app and shape, by day, by status, and by what could have been left out. */
import type { UsageRange, UsageRow } from "./rows.ts";

export type AppSum = { readonly app: string; readonly shape: string; readonly count: number };
export type DaySum = { readonly day: string; readonly count: number };
export type ShapeSum = AppSum & { readonly status: number };
export type SavingSum = { readonly app: string; readonly saving: string; readonly count: number };

export function totalOf(rows: readonly { readonly count: number }[]): number {
  return rows.reduce((sum, { count }) => sum + count, 0);
}

export function sumByApp(rows: readonly UsageRow[]): AppSum[] {
  return sumBy(rows, ({ app, shape }) => ({ app, shape }));
}

/** The highest counts first. */
export function sumByShape(rows: readonly UsageRow[]): ShapeSum[] {
  return sumBy(rows, ({ app, shape, status }) => ({ app, shape, status })).sort((a, b) => b.count - a.count);
}

/** Requests that could have been free, the highest counts first. */
export function sumBySaving(rows: readonly UsageRow[]): SavingSum[] {
  const savable = rows.filter(({ saving }) => saving !== "");
  return sumBy(savable, ({ app, saving }) => ({ app, saving })).sort((a, b) => b.count - a.count);
}

/** Maximum number of days for which days without counts are listed too: ten years. */
const MOST_DAYS = 3_653;

/**
 * All days of the range, including those without counts. An open end of the range, or both ends of one longer than ten
 * years, become the first and last day with counts. If these too are more than ten years apart (some clock was wrong),
 * only days with counts are returned.
 */
export function sumByDay(rows: readonly UsageRow[], { since, until }: UsageRange): DaySum[] {
  const counts = new Map(sumBy(rows, ({ day }) => ({ day })).map(({ day, count }) => [day, count]));
  const counted = [...counts.keys()].sort();
  const [first, last] = [since ?? counted[0], until ?? counted.at(-1)];
  if (first === undefined || last === undefined) return [];
  const [from, to] = isLong(first, last) ? [counted[0] ?? last, counted.at(-1) ?? last] : [first, last];
  const days = isLong(from, to) ? counted : daysBetween(from, to);
  return days.map((day) => ({ day, count: counts.get(day) ?? 0 }));
}

const DAY = 86_400_000;

function isLong(first: string, last: string): boolean {
  return (Date.parse(last) - Date.parse(first)) / DAY > MOST_DAYS;
}

function daysBetween(first: string, last: string): string[] {
  const days: string[] = [];
  for (let time = Date.parse(first); time <= Date.parse(last); time += DAY) {
    days.push(new Date(time).toISOString().slice(0, 10));
  }
  return days;
}

/** Sorted by key. */
function sumBy<K extends object>(rows: readonly UsageRow[], keyOf: (row: UsageRow) => K): (K & { count: number })[] {
  const sums = new Map<string, K & { count: number }>();
  for (const row of rows) {
    const key = keyOf(row);
    const name = JSON.stringify(Object.values(key));
    sums.set(name, { ...key, count: (sums.get(name)?.count ?? 0) + row.count });
  }
  return [...sums].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, sum]) => sum);
}
