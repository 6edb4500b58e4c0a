/** Finds counted requests that would be free, with the same answer, without a superfluous part of their query. */
import { QUERY_SECONDS } from "../../shared/api/errors.ts";
import { formatCount } from "../../shared/text.ts";
import { adviceOf, readUsage, type SavingSum, sumBySaving, sumByShape, totalOf, type UsageRow } from "../usage.ts";
import { type CheckContext, defineCheck, type Finding } from "./check.ts";

export const savingsCheck = defineCheck({
  name: "savings",
  gather: readRecentUsage,
  judge: findFreeEquivalents,
});

/** Share of all counted requests, and number of requests, below which it is not worth changing a client. */
const MIN_SHARE = 0.05;
const MIN_REQUESTS = 100;

function findFreeEquivalents(rows: readonly UsageRow[]): Finding[] {
  const total = totalOf(rows);
  const worth = sumBySaving(rows).filter(({ count }) => count >= MIN_REQUESTS && count >= total * MIN_SHARE);
  return worth.map((sum) => findingOf(sum, total));
}

function findingOf({ app, saving, count }: SavingSum, total: number): Finding {
  const share = `${((count / total) * 100).toFixed(1)} %`;
  const advice = adviceOf(saving);
  return {
    kind: "advice",
    subject: `${app}: requests that could be free`,
    problem: `${formatCount(count)} of ${formatCount(total)} counted requests of the last ${RECENT_DAYS} days (${share}) could be free: a simpler request has the same answer.`,
    gain: `${formatCount(count)} fewer counted requests in ${RECENT_DAYS} days, with the same answers, served from the tree.`,
    remedy: `Change the client: ${advice}. \`precast usage --app ${app}\` shows more.`,
    fix: null,
  };
}

// Finds shapes of requests whose live queries often exceed the time limit.

export const timeoutsCheck = defineCheck({ name: "timeouts", gather: readRecentUsage, judge: findTimeouts });

const TIMEOUT_STATUS = 504;
/** A few in a month may come from an outage or a lock. */
const MIN_TIMEOUTS = 10;

function findTimeouts(rows: readonly UsageRow[]): Finding[] {
  const slow = sumByShape(rows.filter(({ status }) => status === TIMEOUT_STATUS)).filter(
    ({ count }) => count >= MIN_TIMEOUTS,
  );
  return slow.map(({ app, shape, count }) => {
    const sameShape = rows.filter((row) => row.app === app && row.shape === shape);
    const all = sameShape.reduce((sum, row) => sum + row.count, 0);
    return {
      kind: "advice",
      subject: `${app}: slow ${shape} requests`,
      problem: `${formatCount(count)} of ${formatCount(all)} requests in the last ${RECENT_DAYS} days got 504 QUERY_TIMEOUT: their queries took longer than ${QUERY_SECONDS} seconds.`,
      gain: "Clients get answers, and the database has capacity for other queries.",
      remedy: `Take their URLs from the server's log (status 504), and run \`precast explain '<path and query>' --app ${app}\` to see what they read.`,
      fix: null,
    };
  });
}

// Reads the recent counted requests, which are those that `precast doctor` considers.

/** Older requests are no reason to change anything today. */
const RECENT_DAYS = 30;
const DAY = 86_400_000;

/** Without those of apps that exist no longer. */
async function readRecentUsage({ database, now, types }: CheckContext): Promise<UsageRow[]> {
  const since = new Date(now.getTime() - RECENT_DAYS * DAY).toISOString().slice(0, 10);
  const keys = new Set(types.map(({ app }) => app.key));
  return (await readUsage(database, { app: null, since, until: null })).filter(({ app }) => keys.has(app));
}
