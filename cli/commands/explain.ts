/** `precast explain`: tells the shape of a request, whether it counts and why, and what answers it. */
import type { App } from "../../shared/api/catalog.ts";
import { completeTarget } from "../../shared/api/request.ts";
import type { Ignored } from "../../shared/api/warning.ts";
import type { Settings } from "../../shared/config.ts";
import type { Database } from "../../shared/database/database.ts";
import { readTreeState } from "../../shared/tree.ts";
import { isPartialTree } from "../builder/remote.ts";
import { type Context, DONE, defineCommand } from "../command.ts";
import { QUERY_TIMEOUT, readChosenApp, withDatabase } from "../database.ts";
import { type ExplainedFile, type ExplainedQuery, type Explanation, explain } from "../explain/explanation.ts";
import { describeTimes, drawPlan } from "../explain/plan-text.ts";

export const explainCommand = defineCommand({
  name: "explain",
  describes: "show how a request is classified, whether it is counted and why, and what answers it",
  argument: "<path and query>",
  settings: ["app", "sql", "plan"],
  examples: [
    "precast explain '/cities?filter[climate]=highland&per_page=25' --app atlas",
    "precast explain '/cities/search?q=old' --sql --plan",
  ],
  run: async ({ terminal }, settings, argument) => {
    const target = completeTarget(argument);
    const answer = async (database: Database) => {
      const key = settings.app ?? (await readChosenApp(database, null, settings)).key;
      const built = builtApp(settings.out, key);
      if (built !== null) return explain(database, built, target, { out: settings.out, hasTree: true });
      const app = await readChosenApp(database, key, settings);
      return explain(database, app, target, { out: settings.out, hasTree: false });
    };
    const explanation = await withDatabase(settings, answer, { queryTimeout: QUERY_TIMEOUT });
    terminal.result(writeText(explanation, settings, terminal), explanation);
    return DONE;
  },
});

/**
 * The app as it was when its tree was built, which is how the server sees it. Null when there is no tree, or when some
 * of its files are only where it was deployed.
 */
function builtApp(out: string, key: string): App | null {
  return isPartialTree(out) ? null : (readTreeState(out, key)?.app ?? null);
}

/** At most ten lines, but for the SQL and the steps of the plan, which are asked for. */
function writeText(explanation: Explanation, asked: Settings<"sql" | "plan">, { colors }: Context["terminal"]): string {
  const { request, shape, counted, rule, refusal, file, sql: query, nearest_free: nearest, ignored } = explanation;
  const lines = [`${colors.bold("Request")}  ${request}`];
  if (shape !== null) lines.push(`${colors.bold("Shape")}    ${shape}`);
  if (counted !== null)
    lines.push(`${colors.bold("Counted")}  ${counted ? colors.yellow("yes") : colors.green("no")}: ${rule}`);
  if (refusal !== null) lines.push(`${colors.bold("Answer")}   ${refusal.status} ${refusal.code}: ${refusal.message}`);
  if (ignored.length > 0) lines.push(`${colors.bold("Ignored")}  ${ignored.map(ignoredText).join("; ")}`);
  if (file !== null) lines.push(`${colors.bold("File")}     ${file.path}${fileNote(file)}`);
  if (nearest !== null)
    lines.push(
      `${colors.bold("Free")}     ${nearest.target} (${nearest.same ? "the same answer" : "the nearest free request"})`,
    );
  if (query !== null) lines.push(...queryLines(query, asked, colors));
  return lines.join("\n");
}

function ignoredText({ parameter, why }: Ignored): string {
  return `${parameter}: ${why}`;
}

function fileNote({ exists, has_tree }: ExplainedFile): string {
  if (!has_tree) return " (the app has no complete tree: the request is answered live)";
  return exists ? "" : " (this file does not exist: the answer is an empty list or 404)";
}

function queryLines(
  { text, values, plan, service }: ExplainedQuery,
  asked: Settings<"sql" | "plan">,
  colors: Context["terminal"]["colors"],
): string[] {
  const mark = service.by_index ? colors.green : colors.yellow;
  const late = `not completed: the query takes longer than ${QUERY_TIMEOUT / 1_000} seconds, so the live answer is 504 QUERY_TIMEOUT`;
  return [
    `${colors.bold("Plan")}     ${plan.ran ? describeTimes(plan) : colors.red(late)}`,
    ...(asked.plan ? [drawPlan(plan)] : []),
    `${colors.bold("Index")}    ${mark(service.sentence)}`,
    ...(asked.sql ? [colors.bold("SQL"), text, `${colors.bold("Values")}   ${JSON.stringify(values)}`] : []),
  ];
}
