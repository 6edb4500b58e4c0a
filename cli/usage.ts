/** Reads the counted requests of an app and a range of days from `precast.usage`. */
import type { Session } from "../shared/database/database.ts";
import { sql } from "../shared/sql/query.ts";

export type UsageRow = {
  readonly app: string;
  readonly day: string;
  readonly shape: string;
  readonly status: number;
  /** What could have been left out, as shared/api/pricing.ts spells it; empty when the request could not have been free. */
  readonly saving: string;
  readonly count: number;
};

/** `fields` are names with commas between them. Both are empty where none was used, or none was recorded. */
export type NamesRow = {
  readonly app: string;
  readonly day: string;
  readonly type: string;
  readonly fields: string;
  readonly count: number;
};

/** `since` and `until` are days (YYYY-MM-DD, UTC), both included. Null means all apps, or no limit. */
export type UsageRange = { readonly app: string | null; readonly since: string | null; readonly until: string | null };

export async function readUsage(session: Session, range: UsageRange): Promise<UsageRow[]> {
  const rows = await sumUsage(session, range, ["shape", "status", "saving"]);
  return rows.map(([day = "", app = "", shape = "", status, saving = "", count]) => ({
    app,
    day,
    shape,
    status: Number(status),
    saving,
    count: Number(count),
  }));
}

export async function readNames(session: Session, range: UsageRange, names: "type" | "field"): Promise<NamesRow[]> {
  const rows = await sumUsage(session, range, names === "type" ? ["type"] : ["type", "fields"]);
  return rows.map(([day = "", app = "", type = "", ...others]) => {
    const [count, fields = ""] = others.reverse();
    return { app, day, type, fields, count: Number(count) };
  });
}

/** Requests of a shape that used these fields of a type, and how they were answered. */
export type UsedRow = NamesRow & Pick<UsageRow, "shape" | "status">;

export async function readUsed(session: Session, range: UsageRange): Promise<UsedRow[]> {
  const rows = await sumUsage(session, range, ["shape", "status", "type", "fields"]);
  return rows.map(([day = "", app = "", shape = "", status, type = "", fields = "", count]) => ({
    ...{ app, day, shape, status: Number(status), type, fields, count: Number(count) },
  }));
}

/** Sums by day, app and these columns, sorted by all of them in that order. */
async function sumUsage(
  session: Session,
  { app, since, until }: UsageRange,
  columns: readonly string[],
): Promise<string[][]> {
  const rows = await session.query(
    sql(
      `SELECT to_char(day, 'YYYY-MM-DD'), app_key, ${columns.map((column) => `${column}::text`).join()}, sum(count)::text
FROM precast.usage
WHERE ($1::text IS NULL OR app_key = $1) AND ($2::date IS NULL OR day >= $2::date) AND ($3::date IS NULL OR day <= $3::date)
GROUP BY day, app_key, ${columns.join()} ORDER BY day, app_key COLLATE "C", ${columns.join()}`,
      [app, since, until],
    ),
  );
  return rows as string[][];
}

// Adds up counted requests: by app and shape, by day, by status, by what could have been left out, and by names.

export type AppSum = { readonly app: string; readonly shape: string; readonly count: number };
export type DaySum = { readonly day: string; readonly count: number };
export type ShapeSum = AppSum & { readonly status: number };
export type SavingSum = { readonly app: string; readonly saving: string; readonly count: number };

export function sumCounts(rows: readonly { readonly count: number }[]): number {
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

export type NamesSum = Omit<NamesRow, "day">;

/** The highest counts first. */
export function sumByNames(rows: readonly NamesRow[]): NamesSum[] {
  return sumBy(rows, ({ app, type, fields }) => ({ app, type, fields })).sort((a, b) => b.count - a.count);
}

/** Maximum number of days for which days without counts are listed too: ten years. */
const MOST_DAYS = 3_653;

/**
 * All days of the range, including those without counts. An open end of the range, or both ends of one longer than ten
 * years, become the first and last day with counts. If these too are more than ten years apart (some clock was wrong),
 * only days with counts are returned.
 */
export function sumByDay(
  rows: readonly { readonly day: string; readonly count: number }[],
  { since, until }: UsageRange,
): DaySum[] {
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
export function sumBy<R extends { readonly count: number }, K extends object>(
  rows: readonly R[],
  keyOf: (row: R) => K,
): (K & { count: number })[] {
  const sums = new Map<string, K & { count: number }>();
  for (const row of rows) {
    const key = keyOf(row);
    const name = JSON.stringify(Object.values(key));
    sums.set(name, { ...key, count: (sums.get(name)?.count ?? 0) + row.count });
  }
  return [...sums].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, sum]) => sum);
}

// Says how to change counted requests so that they are free with the same answer. Reads texts of shared/api/pricing.ts.

const ADVICE: Readonly<Record<string, string | undefined>> = {
  per_page: "which is the default",
  page: "which is the first page anyway",
  sort: "which is the default order",
  fields: "which names all fields that a list shows",
  populate: "which names no relation",
};
const REWRITES: Readonly<Record<string, string | undefined>> = {
  "filter[][in]": "write filter[field]=value instead of filter[field][in]=value with one value",
  "filter[][gte..lte]": "write filter[field]=value instead of gte and lte with the same value",
};

export function adviseOn(saving: string): string {
  return saving.split("&").map(adviceOfPart).join("; ");
}

/** A newer server may have recorded savings that this version does not know. */
function adviceOfPart(part: string): string {
  const reason = ADVICE[part.split("=")[0] ?? ""];
  return REWRITES[part] ?? (reason === undefined ? `drop ${part}` : `drop ${part}, ${reason}`);
}
