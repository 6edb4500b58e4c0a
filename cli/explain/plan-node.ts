/** Reads what EXPLAIN tells in JSON: a tree of steps as plain data. */
import * as v from "valibot";

export type PlanNode = {
  /** As PostgreSQL names it: `Index Only Scan`. */
  readonly step: string;
  /** What the query calls it, where it does: `matched`. */
  readonly name: string | null;
  readonly table: string | null;
  readonly index: string | null;
  /** By what an index is entered, and what is looked at row by row behind it. */
  readonly condition: string | null;
  readonly filter: string | null;
  /** Rows that it gives, over all its runs. Null in `actual` where the query was not run. */
  readonly rows: { readonly estimated: number; readonly actual: number | null };
  /** Rows that it read and left out. */
  readonly discarded: number | null;
  /** How often it ran, and how long with all below it: processes that share it run at the same time. */
  readonly loops: number | null;
  readonly milliseconds: number | null;
  readonly nodes: readonly PlanNode[];
};

export type QueryPlan = {
  /** Was the query run to the end? */
  readonly ran: boolean;
  readonly planning_ms: number | null;
  readonly execution_ms: number | null;
  /** Pages of the database that were read: from its memory, and from beyond. */
  readonly pages: { readonly memory: number; readonly disk: number } | null;
  readonly root: PlanNode;
};

type Told = v.InferOutput<typeof OWN> & { readonly Plans?: readonly Told[] | undefined };

const text = v.optional(v.string());
const number = v.optional(v.number());
const OWN = v.object({
  "Node Type": v.string(),
  "Subplan Name": text,
  "CTE Name": text,
  "Relation Name": text,
  "Index Name": text,
  "Index Cond": text,
  Filter: text,
  "Plan Rows": v.number(),
  "Actual Rows": number,
  "Actual Loops": number,
  "Actual Total Time": number,
  "Workers Launched": number,
  "Rows Removed by Filter": number,
  "Rows Removed by Index Recheck": number,
  "Shared Hit Blocks": number,
  "Shared Read Blocks": number,
});
const NODE: v.GenericSchema<unknown, Told> = v.object({
  ...OWN.entries,
  Plans: v.optional(v.array(v.lazy(() => NODE))),
});
const PLAN = v.tuple([v.object({ Plan: NODE, "Planning Time": number, "Execution Time": number })]);

/** `told` is the answer of `EXPLAIN (FORMAT JSON)`: text from PostgreSQL, and read already from the embedded database. */
export function readPlan(told: unknown): QueryPlan {
  const [{ Plan: root, ...times }] = v.parse(PLAN, typeof told === "string" ? JSON.parse(told) : told);
  const memory = root["Shared Hit Blocks"];
  return {
    ran: times["Execution Time"] !== undefined,
    planning_ms: times["Planning Time"] ?? null,
    execution_ms: times["Execution Time"] ?? null,
    pages: memory === undefined ? null : { memory, disk: root["Shared Read Blocks"] ?? 0 },
    root: nodeOf(root),
  };
}

/** `processes` may run it at the same time: those of a Gather above it. */
function nodeOf(told: Told, processes = 1): PlanNode {
  const { "Actual Loops": loops, "Actual Rows": rows, "Actual Total Time": time, "Workers Launched": workers } = told;
  const discarded = (told["Rows Removed by Filter"] ?? 0) + (told["Rows Removed by Index Recheck"] ?? 0);
  // What EXPLAIN gives is the mean of all runs.
  const inAll = (mean: number | undefined) =>
    loops === undefined || mean === undefined ? null : Math.round(mean * loops);
  return {
    step: told["Node Type"],
    name: nameOf(told),
    table: told["Relation Name"] ?? null,
    index: told["Index Name"] ?? null,
    condition: told["Index Cond"] ?? null,
    filter: told.Filter ?? null,
    rows: { estimated: told["Plan Rows"] * Math.max(loops ?? 1, 1), actual: inAll(rows) },
    discarded: inAll(discarded),
    loops: loops ?? null,
    milliseconds: loops === undefined || time === undefined ? null : timeOf(time, loops, processes),
    nodes: (told.Plans ?? []).map((below) => nodeOf(below, workers === undefined ? processes : workers + 1)),
  };
}

/** Each process has its part of the runs. */
function timeOf(mean: number, loops: number, processes: number): number {
  const runs = loops / Math.max(1, Math.min(loops, processes));
  return Math.round(mean * runs * 1_000) / 1_000;
}

function nameOf(told: Told): string | null {
  const [, name] = /^CTE (.+)$/.exec(told["Subplan Name"] ?? "") ?? [];
  return name ?? told["CTE Name"] ?? null;
}
