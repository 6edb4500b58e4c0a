/** Finds shapes of requests whose live queries often exceed the time limit. */
import { QUERY_SECONDS } from "../../../shared/refusal.ts";
import { formatCount } from "../../terminal/format.ts";
import type { UsageRow } from "../../usage/rows.ts";
import { sumByShape } from "../../usage/sums.ts";
import { defineCheck } from "../check.ts";
import type { Finding } from "../finding.ts";
import { RECENT_DAYS, readRecentUsage } from "../usage.ts";

export const timeoutsCheck = defineCheck({ name: "timeouts", gather: readRecentUsage, judge: findingsOf });

const TIMEOUT_STATUS = 504;
/** A few in a month may come from an outage or a lock. */
const MIN_REQUESTS = 10;

function findingsOf(rows: readonly UsageRow[]): Finding[] {
  const slow = sumByShape(rows.filter(({ status }) => status === TIMEOUT_STATUS)).filter(
    ({ count }) => count >= MIN_REQUESTS,
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
