/** Finds counted requests that would be free, with the same answer, without a superfluous part of their query. */
import { formatCount } from "../../terminal/format.ts";
import { adviceOf } from "../../usage/advice.ts";
import type { UsageRow } from "../../usage/rows.ts";
import { type SavingSum, sumBySaving, totalOf } from "../../usage/sums.ts";
import { defineCheck } from "../check.ts";
import type { Finding } from "../finding.ts";
import { RECENT_DAYS, readRecentUsage } from "../usage.ts";

export const savingsCheck = defineCheck({
  name: "savings",
  gather: readRecentUsage,
  judge: findingsOf,
});

/** Share of all counted requests, and number of requests, below which it is not worth changing a client. */
const MIN_SHARE = 0.05;
const MIN_REQUESTS = 100;

function findingsOf(rows: readonly UsageRow[]): Finding[] {
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
