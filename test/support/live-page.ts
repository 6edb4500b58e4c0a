/** Answers lists and searches as the server does, without the server: from a database and what is known of its slots. */
import { measureQuery } from "../../cli/explain/explanation.ts";
import type { PlanNode } from "../../cli/explain/query-plan.ts";
import { type App, findType } from "../../shared/api/catalog.ts";
import { isRefusal } from "../../shared/api/errors.ts";
import { type ListPlan, planRequest, type SearchPlan } from "../../shared/api/plan.ts";
import { readRequest } from "../../shared/api/request.ts";
import type { Database } from "../../shared/database/database.ts";
import { answerLive, buildQuery, currentSlots } from "../../shared/live.ts";
import type { SlotCache } from "../../shared/sql/columns.ts";
import type { Query } from "../../shared/sql/query.ts";

/** `target` is what comes after `/api/v1/`, such as `goods?sort=price`. */
export function pagePlan(app: App, target: string): ListPlan | SearchPlan {
  const request = readRequest({ method: "GET", target: `/api/v1/${target}`, appKey: app.key });
  const slug = /^[^/?]+/.exec(target)?.[0] ?? "";
  const plan = request.kind === "request" ? planRequest(request, findType(app, slug)) : request;
  if (plan.kind !== "list" && plan.kind !== "search")
    throw new Error(`${target} is no list or search that is answered`);
  return plan;
}

type Item = { readonly id: string; readonly published_at: string; readonly price?: number };
export type Page = { readonly total: number; readonly items: readonly Item[] };

export async function pageOf(
  database: Pick<Database, "query">,
  app: App,
  target: string,
  cache: SlotCache,
): Promise<Page> {
  const answer = await answerLive(database, app, pagePlan(app, target), cache);
  if (isRefusal(answer)) throw new Error(`${target} is refused`);
  const { data, meta } = JSON.parse(String(answer.body.bytes));
  return { total: meta.total, items: data };
}

/** The plan of the query, run by itself: with slots read anew. */
export async function measuredPage(database: Database, app: App, target: string): Promise<PlanNode> {
  const plan = pagePlan(app, target);
  const query = buildQuery(app, plan, await currentSlots(database, app, plan)) as Query;
  return (await measureQuery(database, query)).root;
}
