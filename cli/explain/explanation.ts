/** Finds out what a request means to an app, what it costs and what answers it, without a running server. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { findAddress, nameFile, nameFolder } from "../../shared/api/address.ts";
import type { App } from "../../shared/api/catalog.ts";
import {
  findStatus,
  isRefusal,
  MAX_TARGET_SIZE,
  type Refusal,
  targetTooLong,
  typeNotFound,
} from "../../shared/api/errors.ts";
import { findNearestFree, type NearestFree } from "../../shared/api/nearest-free.ts";
import type { Plan } from "../../shared/api/plan.ts";
import { type FreeShape, isCountedShape } from "../../shared/api/pricing.ts";
import { type ApiRequest, readRequest } from "../../shared/api/request.ts";
import { resolveRequest } from "../../shared/api/respond.ts";
import { findIgnored, type Ignored } from "../../shared/api/warning.ts";
import type { Database, Session } from "../../shared/database/database.ts";
import { DatabaseFault, isCancelled } from "../../shared/database/errors.ts";
import { writeLiteral } from "../../shared/database/postgres/query.ts";
import { planningSql } from "../../shared/database/postgres/session.ts";
import { buildQuery, currentSlots } from "../../shared/live.ts";
import { entryCountsQuery, readCounts } from "../../shared/sql/counts.ts";
import { type Query, type Row, sql } from "../../shared/sql/query.ts";
import { describeIndexUse, type IndexUse, type QueryPlan, readPlan } from "./query-plan.ts";

export type Explanation = {
  readonly request: string;
  readonly shape: string | null;
  readonly counted: boolean | null;
  readonly rule: string | null;
  readonly refusal: { readonly status: number; readonly code: string; readonly message: string } | null;
  readonly file: ExplainedFile | null;
  readonly sql: ExplainedQuery | null;
  readonly nearest_free: NearestFree | null;
  /** What was sent and has no effect. */
  readonly ignored: readonly Ignored[];
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
type TreeFolder = { readonly out: string; readonly hasTree: boolean };

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
    ignored: [],
  };
  if (request.kind === "preflight") return empty;
  if (target.length > MAX_TARGET_SIZE) return { ...empty, refusal: describeRefusal(targetTooLong()) };
  if (isRefusal(request)) return { ...empty, refusal: describeRefusal(request) };
  const { type, price, plan } = resolveRequest(app, request);
  const { shape, counted, rule } = price;
  const explanation = {
    ...empty,
    shape,
    counted,
    rule,
    nearest_free: counted && type !== undefined ? findNearestFree(request, type) : null,
    ignored: findIgnored(target, request, type),
  };
  if (isRefusal(plan)) return { ...explanation, refusal: describeRefusal(plan) };
  if (!isCountedShape(shape)) return { ...explanation, file: fileFor(request, shape, app, plan, folder) };
  const sql = await explainQuery(database, app, plan);
  if (isRefusal(sql)) return { ...explanation, refusal: describeRefusal(sql) };
  // The server looks for the entry first: without it, the answer is 404.
  const refused = plan.kind === "entry" ? plan.refusal : null;
  return { ...explanation, sql, refusal: refused === null ? null : describeRefusal(refused) };
}

function describeRefusal(refusal: Refusal): Explanation["refusal"] {
  return { status: findStatus(refusal), code: refusal.code, message: refusal.message };
}

function fileFor(
  request: ApiRequest,
  shape: FreeShape,
  app: App,
  plan: Plan,
  { out, hasTree }: TreeFolder,
): ExplainedFile | null {
  const address = findAddress(request, shape, "type" in plan ? plan.type : undefined);
  if (address === null) return null;
  const path = join(out, nameFolder(app.key), nameFile(address));
  return { path, exists: existsSync(path), has_tree: hasTree };
}

/** Null when no query is needed; a refusal when the type has been deleted or hidden since the tree was built. */
async function explainQuery(database: Database, app: App, plan: Plan): Promise<ExplainedQuery | Refusal | null> {
  const counts = readCounts(await database.query(entryCountsQuery(app.key)));
  const entries = "type" in plan ? counts.get(plan.type.slug) : null;
  if (entries === undefined) return typeNotFound();
  const query = buildQuery(app, plan, await currentSlots(database, app, plan));
  if (query === null) return null;
  const measured = await measureQuery(database, query);
  const { text, values } = query;
  // What is read for `populate` are entries of other types, whose numbers say nothing here.
  const isOfType = measured.ran && plan.kind !== "entry";
  return { text, values, plan: measured, service: describeIndexUse(measured, plan, isOfType ? entries : null) };
}

// Runs a query as the live server does, and reads its plan and times from the database.

/**
 * Returns the plan with its times, or without them when the query exceeds the time limit of the database. It is the
 * plan that the live server uses: on PostgreSQL the generic plan if the server keeps one for the query, else the plan
 * for these values.
 */
export async function measureQuery(database: Database, query: Query): Promise<QueryPlan> {
  try {
    return await explainWith(database, query, "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)");
  } catch (error) {
    if (!isLate(error)) throw error;
    return explainWith(database, query, "EXPLAIN (FORMAT JSON)");
  }
}

async function explainWith(database: Database, query: Query, how: string): Promise<QueryPlan> {
  const explained = { text: `${how} ${query.text}`, values: query.values };
  // The embedded database ends slow queries only outside of transactions, where a setting would affect all queries.
  if (database.kind === "embedded") return planIn(await database.query(explained));
  return database.transaction("read", async (session) => {
    if (query.recurringPlan !== "generic") return planIn(await session.query(explained));
    return planIn(await explainGeneric(session, query, how));
  });
}

function planIn([row]: readonly Row[]): QueryPlan {
  return readPlan(row?.[0]);
}

function isLate(error: unknown): boolean {
  return error instanceof DatabaseFault && (error.reason === "timeout" || isCancelled(error));
}

// Explains the generic plan of a query, which a connection keeps for any values. Only prepared statements have one.

let explained = 0;

/** `how` is EXPLAIN with its options. `session` must be in a transaction of PostgreSQL. */
async function explainGeneric(session: Session, { text, values }: Query, how: string): Promise<Row[]> {
  // A name of its own: the connection may have prepared other statements, which it must keep.
  const name = `explained_${++explained}`;
  await session.execute(`PREPARE ${name} AS ${text}; ${planningSql("generic", "SET LOCAL")}`);
  // EXECUTE accepts no bind parameters, so the values are written as literals.
  return session.query(sql(`${how} EXECUTE ${name} (${values.map(writeLiteral).join(", ")})`));
}
