/**
 * What the studio's page on usage shows: the counted requests of an app by day, and by shape or type, those that could
 * have been free, and how many the month will have.
 */
import { isDate } from "../../shared/api/value.ts";
import { ConfigError } from "../../shared/config.ts";
import type { Session } from "../../shared/database/database.ts";
import {
  adviseOn,
  type DaySum,
  readNames,
  readUsage,
  type SavingSum,
  sumBy,
  sumByDay,
  sumBySaving,
  sumCounts,
  type UsageRow,
} from "../usage.ts";
import { readViewedApp, type Site } from "./view.ts";

/** Requests of a day, for one shape or type. A type is empty when the app did not have it, or none was recorded. */
export type NamedCount = { readonly day: string; readonly name: string; readonly count: number };

export type Usage = {
  readonly since: string;
  readonly until: string;
  readonly total: number;
  /** All days, also those without counts. */
  readonly days: readonly DaySum[];
  readonly shapes: readonly NamedCount[];
  readonly types: readonly NamedCount[];
  readonly savings: readonly (Omit<SavingSum, "app"> & { readonly advice: string })[];
  readonly month: Month;
  /** The number of counted requests a month that is paid for; null when nobody has said it. */
  readonly plan: number | null;
};

/** The month of today. */
export type Month = {
  /** `2026-11` */
  readonly name: string;
  /** Requests so far. */
  readonly counted: number;
  /** Requests a day, in the last `meanDays` days that are over. */
  readonly mean: number;
  readonly meanDays: number;
  readonly daysLeft: number;
  readonly forecast: number;
};

export async function readUsageView(site: Site, query: URLSearchParams): Promise<Usage> {
  const { key } = await readViewedApp(site, query);
  const today = dayOf(site.now().getTime());
  const range = readRange(query, today);
  return site.database.transaction("read", async (session) => {
    const rows = await readUsage(session, { app: key, ...range });
    const names = await readNames(session, { app: key, ...range }, "type");
    return {
      ...range,
      total: sumCounts(rows),
      days: sumByDay(rows, { app: key, ...range }),
      shapes: sumBy(rows, ({ day, shape }) => ({ day, name: shape })),
      types: sumBy(names, ({ day, type }) => ({ day, name: type })),
      savings: sumBySaving(rows).map(({ saving, count }) => ({ saving, count, advice: adviseOn(saving) })),
      month: forecastMonth(await readRecent(session, key, today), today),
      plan: site.settings.monthlyPlan ?? null,
    };
  });
}

/** Days of the range when none is asked for, today included. */
const USUAL_DAYS = 30;
/** Days that are over, by whose mean the rest of the month is estimated. */
const MEAN_DAYS = 7;

const DAY = 86_400_000;

function dayOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}

function daysBefore(day: string, days: number): string {
  return dayOf(Date.parse(day) - days * DAY);
}

/** Throws ConfigError for what is no day, and for a range that ends before it begins. */
function readRange(query: URLSearchParams, today: string): { readonly since: string; readonly until: string } {
  for (const name of ["since", "until"]) {
    const day = query.get(name);
    if (day && !isDate(day)) throw new ConfigError([`${name} must be a date such as 2026-01-20.`]);
  }
  const until = query.get("until") || today;
  const since = query.get("since") || daysBefore(until, USUAL_DAYS - 1);
  if (since > until) throw new ConfigError([`The first day, ${since}, is later than the last, ${until}.`]);
  return { since, until };
}

/** What the forecast needs: this month, and the days before today. */
function readRecent(session: Session, app: string, today: string): Promise<UsageRow[]> {
  const [first, before] = [`${today.slice(0, 8)}01`, daysBefore(today, MEAN_DAYS)];
  return readUsage(session, { app, since: first < before ? first : before, until: today });
}

/** What is counted so far, and for each day that is left as many as the last days had on average. */
export function forecastMonth(rows: readonly Pick<UsageRow, "day" | "count">[], today: string): Month {
  const [year = 0, month = 0, day = 0] = today.split("-").map(Number);
  const name = today.slice(0, 7);
  const counted = sumCounts(rows.filter((row) => row.day.startsWith(name)));
  const lately = rows.filter((row) => row.day < today && row.day >= daysBefore(today, MEAN_DAYS));
  const mean = sumCounts(lately) / MEAN_DAYS;
  const daysLeft = new Date(Date.UTC(year, month, 0)).getUTCDate() - day;
  return { name, counted, mean, meanDays: MEAN_DAYS, daysLeft, forecast: Math.round(counted + mean * daysLeft) };
}
