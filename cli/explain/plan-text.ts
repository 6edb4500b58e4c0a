/** Writes the plan of a query for a person: its steps, and how long they took. */
import { formatCount, formatCounted } from "../../shared/text.ts";
import type { PlanNode, QueryPlan } from "./query-plan.ts";

/** One line for each step, with the steps that feed it below. */
export function drawPlan(plan: QueryPlan): string {
  return drawNode(plan.root, 0).join("\n");
}

function drawNode(node: PlanNode, depth: number): string[] {
  const line = `${"  ".repeat(depth)}-> ${describeNode(node)}: ${describeFacts(node)}`;
  return [line, ...node.nodes.flatMap((below) => drawNode(below, depth + 1))];
}

function describeNode({ step, name, table, index }: PlanNode): string {
  const named = name === null ? step : `${step} (${name})`;
  return `${named}${table === null ? "" : ` of ${table}`}${index === null ? "" : ` by index ${index}`}`;
}

function describeFacts({ rows, discarded, loops, milliseconds }: PlanNode): string {
  if (rows.actual === null) return `${formatCounted(rows.estimated, "row")} expected`;
  if (loops === 0) return "never run";
  const facts = [
    `${formatCounted(rows.actual, "row")} (${formatCount(rows.estimated)} expected)`,
    ...(discarded ? [`${formatCount(discarded)} discarded`] : []),
    ...(loops !== null && loops > 1 ? [`${formatCount(loops)} times`] : []),
    ...(milliseconds === null ? [] : [formatMilliseconds(milliseconds)]),
  ];
  return facts.join(", ");
}

/** Formats in one line how long planning and execution took, and how many pages were read. */
export function describeTimes({ planning_ms, execution_ms, pages }: QueryPlan): string {
  const parts = [
    ...(planning_ms === null ? [] : [`planned in ${formatMilliseconds(planning_ms)}`]),
    ...(execution_ms === null ? [] : [`run in ${formatMilliseconds(execution_ms)}`]),
    ...(pages === null
      ? []
      : [
          `${formatCounted(pages.memory, "page")} from shared buffers, ${formatCount(pages.disk)} from disk or the OS cache`,
        ]),
  ];
  return parts.join(", ");
}

export function formatMilliseconds(milliseconds: number): string {
  return `${milliseconds.toFixed(milliseconds < 10 ? 2 : 0)} ms`;
}
