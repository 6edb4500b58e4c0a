/** Reads the JSON output of EXPLAIN as plain data: a tree of plan steps. */
import * as v from "valibot";

export type PlanNode = {
  /** Type of the step as PostgreSQL names it: `Index Only Scan`. */
  readonly step: string;
  /** Name of the CTE that the step computes or reads, such as `matched`; null when there is none. */
  readonly name: string | null;
  readonly table: string | null;
  readonly index: string | null;
  /** Condition that is looked up in the index. */
  readonly condition: string | null;
  /** Condition that is checked for each row that was read. */
  readonly filter: string | null;
  /** Rows that the step returns, over all its runs. `actual` is null when the query was not run. */
  readonly rows: { readonly estimated: number; readonly actual: number | null };
  /** Rows that were read and then discarded, over all runs; null when the query was not run. */
  readonly discarded: number | null;
  /** Number of times that the step ran; null when the query was not run. */
  readonly loops: number | null;
  /** Elapsed time including all steps below. Parallel processes share the runs of a step at the same time. */
  readonly milliseconds: number | null;
  readonly nodes: readonly PlanNode[];
};

export type QueryPlan = {
  /** Whether the query ran to its end. */
  readonly ran: boolean;
  readonly planning_ms: number | null;
  readonly execution_ms: number | null;
  /** Database pages that were read: from the database's buffers (`memory`), and from outside of them (`disk`). */
  readonly pages: { readonly memory: number; readonly disk: number } | null;
  readonly root: PlanNode;
};

type ExplainNode = v.InferOutput<typeof NODE_FIELDS> & { readonly Plans?: readonly ExplainNode[] | undefined };

const text = v.optional(v.string());
const number = v.optional(v.number());
const NODE_FIELDS = v.object({
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
const NODE: v.GenericSchema<unknown, ExplainNode> = v.object({
  ...NODE_FIELDS.entries,
  Plans: v.optional(v.array(v.lazy(() => NODE))),
});
const PLAN = v.tuple([v.object({ Plan: NODE, "Planning Time": number, "Execution Time": number })]);

/** `output` is that of `EXPLAIN (FORMAT JSON)`: text from PostgreSQL, already parsed from the embedded database. */
export function readPlan(output: unknown): QueryPlan {
  const [{ Plan: root, ...times }] = v.parse(PLAN, typeof output === "string" ? JSON.parse(output) : output);
  const memory = root["Shared Hit Blocks"];
  return {
    ran: times["Execution Time"] !== undefined,
    planning_ms: times["Planning Time"] ?? null,
    execution_ms: times["Execution Time"] ?? null,
    pages: memory === undefined ? null : { memory, disk: root["Shared Read Blocks"] ?? 0 },
    root: nodeOf(root),
  };
}

/** `processes` is how many processes may run the step at the same time, as launched by a Gather above it. */
function nodeOf(node: ExplainNode, processes = 1): PlanNode {
  const { "Actual Loops": loops, "Actual Rows": rows, "Actual Total Time": time, "Workers Launched": workers } = node;
  const discarded = (node["Rows Removed by Filter"] ?? 0) + (node["Rows Removed by Index Recheck"] ?? 0);
  // EXPLAIN reports the mean over all runs.
  const inAll = (mean: number | undefined) =>
    loops === undefined || mean === undefined ? null : Math.round(mean * loops);
  return {
    step: node["Node Type"],
    name: nameOf(node),
    table: node["Relation Name"] ?? null,
    index: node["Index Name"] ?? null,
    condition: node["Index Cond"] ?? null,
    filter: node.Filter ?? null,
    rows: { estimated: node["Plan Rows"] * Math.max(loops ?? 1, 1), actual: inAll(rows) },
    discarded: inAll(discarded),
    loops: loops ?? null,
    milliseconds: loops === undefined || time === undefined ? null : timeOf(time, loops, processes),
    nodes: (node.Plans ?? []).map((below) => nodeOf(below, workers === undefined ? processes : workers + 1)),
  };
}

/** Elapsed milliseconds, if the processes share the runs evenly. */
function timeOf(mean: number, loops: number, processes: number): number {
  const runs = loops / Math.max(1, Math.min(loops, processes));
  return Math.round(mean * runs * 1_000) / 1_000;
}

function nameOf(node: ExplainNode): string | null {
  const [, name] = /^CTE (.+)$/.exec(node["Subplan Name"] ?? "") ?? [];
  return name ?? node["CTE Name"] ?? null;
}
