/** Reads from the plan of a query that was run what the database has read for it. */
import type { PlanNode } from "../../cli/explain/query-plan.ts";

/** A step of a plan and all steps below it. */
export function nodesOf(node: PlanNode): PlanNode[] {
  return [node, ...node.nodes.flatMap(nodesOf)];
}

/** The steps that have read a table. */
export function readsOf(root: PlanNode, table: string): PlanNode[] {
  return nodesOf(root).filter((node) => node.table === table && node.rows.actual !== null);
}

/** How many rows of a table were read, those that were discarded included. */
export function rowsReadFrom(root: PlanNode, table: string): number {
  return readsOf(root, table).reduce((sum, { rows, discarded }) => sum + (rows.actual ?? 0) + (discarded ?? 0), 0);
}
