/**
 * `precast explain`: tells the shape of a request, whether it counts and why, and what answers it. Needs no running
 * server.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { addressOf, fileOf, folderOf } from "../../shared/address.ts";
import { readApps } from "../../shared/apps.ts";
import type { App } from "../../shared/catalog.ts";
import { findType } from "../../shared/catalog.ts";
import type { Database } from "../../shared/database/database.ts";
import { currentSlots, queryOf } from "../../shared/live.ts";
import { type FreeShape, meter } from "../../shared/metering.ts";
import { type Plan, planRequest } from "../../shared/plan.ts";
import { isRefusal, type Refusal, statusOf } from "../../shared/refusal.ts";
import { type ApiRequest, readRequest } from "../../shared/request.ts";
import { countQuery } from "../../shared/sql/tree-query.ts";
import { ELSEWHERE_FILE, STATE_FOLDER } from "../../shared/state.ts";
import { chooseApps, stateOf } from "../build/selection.ts";
import { type Context, DONE, defineCommand } from "../command.ts";
import { QUERY_TIMEOUT, withDatabase } from "../database.ts";
import { drawPlan, timesText } from "../explain/drawing.ts";
import { type IndexUse, indexUseOf } from "../explain/index-use.ts";
import { measureQuery } from "../explain/measure.ts";
import { type Nearest, nearestFree } from "../explain/nearest.ts";
import type { QueryPlan } from "../explain/plan-node.ts";

type Explanation = {
  readonly request: string;
  readonly shape: string | null;
  readonly counted: boolean | null;
  readonly rule: string | null;
  readonly refusal: { readonly status: number; readonly code: string; readonly message: string } | null;
  readonly file: ExplainedFile | null;
  readonly sql: ExplainedQuery | null;
  readonly nearest_free: Nearest | null;
};

/** When `has_tree` is false, the app has no complete tree and the server answers live. */
type ExplainedFile = { readonly path: string; readonly exists: boolean; readonly has_tree: boolean };

type ExplainedQuery = {
  readonly text: string;
  readonly values: readonly unknown[];
  readonly plan: QueryPlan;
  readonly service: IndexUse;
};

export const explainCommand = defineCommand({
  name: "explain",
  describes: "show how a request is classified, whether it is counted and why, and what answers it",
  argument: "<path and query>",
  settings: ["app"],
  examples: ["precast explain '/cities?filter[climate]=highland&per_page=25' --app atlas"],
  run: async ({ terminal }, settings, argument) => {
    const target = targetOf(argument);
    const answer = async (database: Database) => {
      const built = builtApp(settings.out, settings.app);
      if (built !== null) return explain(database, built, target, { out: settings.out, hasTree: true });
      const [app] = chooseApps(await readApps(database, settings), [settings.app]);
      return explain(database, app as App, target, { out: settings.out, hasTree: false });
    };
    const explanation = await withDatabase(settings, answer, { queryTimeout: QUERY_TIMEOUT });
    terminal.result(textOf(explanation, terminal), explanation);
    return DONE;
  },
});

/**
 * The app as it was when its tree was built, which is how the server sees it. Null when there is no tree, or when some
 * of its files are only where it was deployed.
 */
function builtApp(out: string, key: string): App | null {
  const isWhole = !existsSync(join(out, STATE_FOLDER, ELSEWHERE_FILE));
  return isWhole ? (stateOf(out, key)?.app ?? null) : null;
}

/** The request target of an argument, which may begin with an origin and may omit the base path. */
function targetOf(argument: string): string {
  const target = argument.replace(/^https?:\/\/[^/?#]*/, "");
  const path = target.startsWith("/") ? target : `/${target}`;
  return /^\/api\/v1(\/|$)/.test(path) ? path : `/api/v1${path}`;
}

/** The folder of the trees, and whether it has a complete tree of the app. */
type TreeFolder = { readonly out: string; readonly hasTree: boolean };

async function explain(database: Database, app: App, target: string, folder: TreeFolder): Promise<Explanation> {
  const request = readRequest({ method: "GET", target, appKey: app.key });
  const empty = {
    request: target,
    shape: null,
    counted: null,
    rule: null,
    refusal: null,
    file: null,
    sql: null,
    nearest_free: null,
  };
  if (request.kind === "preflight") return empty;
  if (isRefusal(request)) return { ...empty, refusal: refusalOf(request) };
  const type = request.route.kind === "catalog" ? undefined : findType(app, request.route.slug);
  const { shape, counted, rule } = meter(request, type);
  const plan = planRequest(request, type);
  const explanation = {
    ...empty,
    shape,
    counted,
    rule,
    nearest_free: counted && type !== undefined ? nearestFree(request, type) : null,
  };
  if (isRefusal(plan)) return { ...explanation, refusal: refusalOf(plan) };
  return counted
    ? { ...explanation, sql: await explainQuery(database, app, plan) }
    : { ...explanation, file: fileFor(request, shape as FreeShape, app, plan, folder) };
}

function refusalOf(refusal: Refusal): Explanation["refusal"] {
  return { status: statusOf(refusal), code: refusal.code, message: refusal.message };
}

function fileFor(
  request: ApiRequest,
  shape: FreeShape,
  app: App,
  plan: Plan,
  { out, hasTree }: TreeFolder,
): ExplainedFile | null {
  const address = addressOf(request, shape, "type" in plan ? plan.type : undefined);
  if (address === null) return null;
  const path = join(out, folderOf(app.key), fileOf(address));
  return { path, exists: existsSync(path), has_tree: hasTree };
}

async function explainQuery(database: Database, app: App, plan: Plan): Promise<ExplainedQuery | null> {
  const query = queryOf(app, plan, await currentSlots(database, app, plan));
  if (query === null) return null;
  const measured = await measureQuery(database, query);
  // When the query takes too long, counting may take too long as well.
  const entries = measured.ran && "type" in plan ? await countEntries(database, app.key, plan.type.slug) : null;
  const { text, values } = query;
  return { text, values, plan: measured, service: indexUseOf(measured, plan, entries) };
}

async function countEntries(database: Database, appKey: string, slug: string): Promise<number> {
  const [row] = await database.query(countQuery(appKey, slug));
  return Number(row?.[0]);
}

function textOf(explanation: Explanation, { colors }: Context["terminal"]): string {
  const { request, shape, counted, rule, refusal, file, sql: query, nearest_free: nearest } = explanation;
  const lines = [`${colors.bold("Request")}  ${request}`];
  if (shape !== null) lines.push(`${colors.bold("Shape")}    ${shape}`);
  if (counted !== null)
    lines.push(`${colors.bold("Counted")}  ${counted ? colors.yellow("yes") : colors.green("no")}: ${rule}`);
  if (refusal !== null) lines.push(`${colors.bold("Answer")}   ${refusal.status} ${refusal.code}: ${refusal.message}`);
  if (file !== null) lines.push(`${colors.bold("File")}     ${file.path}${fileNote(file)}`);
  if (nearest !== null)
    lines.push(
      `${colors.bold("Free")}     ${nearest.target} (${nearest.same ? "the same answer" : "the nearest free request"})`,
    );
  if (query !== null) lines.push(...queryLines(query, colors));
  return lines.join("\n");
}

function fileNote({ exists, has_tree }: ExplainedFile): string {
  if (!has_tree) return " (the app has no complete tree: the request is answered live)";
  return exists ? "" : " (this file does not exist: the answer is an empty list or 404)";
}

function queryLines({ text, values, plan, service }: ExplainedQuery, colors: Context["terminal"]["colors"]): string[] {
  const mark = service.by_index ? colors.green : colors.yellow;
  const late = `not completed: the query takes longer than ${QUERY_TIMEOUT / 1_000} seconds, so the live answer is 504 QUERY_TIMEOUT`;
  return [
    colors.bold("SQL"),
    text,
    `${colors.bold("Values")}   ${JSON.stringify(values)}`,
    `${colors.bold("Plan")}     ${plan.ran ? timesText(plan) : colors.red(late)}`,
    drawPlan(plan),
    `${colors.bold("Index")}    ${mark(service.sentence)}`,
  ];
}
