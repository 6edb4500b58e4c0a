/** Finds out what a request means to an app, what it costs and what answers it, without a running server. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { addressOf, fileOf, folderOf } from "../../shared/address.ts";
import type { App } from "../../shared/catalog.ts";
import type { Database } from "../../shared/database/database.ts";
import { currentSlots, queryOf } from "../../shared/live.ts";
import { type FreeShape, isCountedShape } from "../../shared/metering.ts";
import type { Plan } from "../../shared/plan.ts";
import { readFor } from "../../shared/reading.ts";
import {
  isRefusal,
  MAX_TARGET_SIZE,
  type Refusal,
  statusOf,
  targetTooLong,
  typeNotFound,
} from "../../shared/refusal.ts";
import { type ApiRequest, readRequest } from "../../shared/request.ts";
import { countsOf, entryCountsQuery } from "../../shared/sql/counts.ts";
import { type IndexUse, indexUseOf } from "./index-use.ts";
import { measureQuery } from "./measure.ts";
import { type Nearest, nearestFree } from "./nearest.ts";
import type { QueryPlan } from "./plan-node.ts";

export type Explanation = {
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
export type ExplainedFile = { readonly path: string; readonly exists: boolean; readonly has_tree: boolean };

export type ExplainedQuery = {
  readonly text: string;
  readonly values: readonly unknown[];
  readonly plan: QueryPlan;
  readonly service: IndexUse;
};

/** The folder of the trees, and whether it has a complete tree of the app. */
export type TreeFolder = { readonly out: string; readonly hasTree: boolean };

export async function explain(database: Database, app: App, target: string, folder: TreeFolder): Promise<Explanation> {
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
  if (target.length > MAX_TARGET_SIZE) return { ...empty, refusal: refusalOf(targetTooLong()) };
  if (isRefusal(request)) return { ...empty, refusal: refusalOf(request) };
  const { type, metering, plan } = readFor(app, request);
  const { shape, counted, rule } = metering;
  const explanation = {
    ...empty,
    shape,
    counted,
    rule,
    nearest_free: counted && type !== undefined ? nearestFree(request, type) : null,
  };
  if (isRefusal(plan)) return { ...explanation, refusal: refusalOf(plan) };
  if (!isCountedShape(shape)) return { ...explanation, file: fileFor(request, shape, app, plan, folder) };
  const sql = await explainQuery(database, app, plan);
  if (isRefusal(sql)) return { ...explanation, refusal: refusalOf(sql) };
  // The server looks for the entry first: without it, the answer is 404.
  const refused = plan.kind === "entry" ? plan.refusal : null;
  return { ...explanation, sql, refusal: refused === null ? null : refusalOf(refused) };
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

/** Null when no query is needed; a refusal when the type has been deleted or hidden since the tree was built. */
async function explainQuery(database: Database, app: App, plan: Plan): Promise<ExplainedQuery | Refusal | null> {
  const counts = countsOf(await database.query(entryCountsQuery(app.key)));
  const entries = "type" in plan ? counts.get(plan.type.slug) : null;
  if (entries === undefined) return typeNotFound();
  const query = queryOf(app, plan, await currentSlots(database, app, plan));
  if (query === null) return null;
  const measured = await measureQuery(database, query);
  const { text, values } = query;
  // What is read for `populate` are entries of other types, whose numbers say nothing here.
  const isOfType = measured.ran && plan.kind !== "entry";
  return { text, values, plan: measured, service: indexUseOf(measured, plan, isOfType ? entries : null) };
}
