/**
 * Groups live queries that take about the same time into kinds: by content type, fields of filters and sort, order of
 * magnitude of the page's depth, and length of the shortest search word (no index serves words of one or two letters).
 */
import type { Condition } from "../../shared/condition.ts";
import type { ListPlan, Plan, SearchPlan } from "../../shared/plan.ts";
import { INDEXED_LENGTH } from "../../shared/sql/trigram.ts";
import { lengthOf } from "../../shared/value.ts";

export function kindOf(plan: Plan): string {
  switch (plan.kind) {
    case "catalog":
      return plan.kind;
    case "schema":
    case "entry":
      return `${plan.kind} ${plan.type.slug}`;
    case "list":
      return pageKindOf(plan);
    case "search":
      return `${pageKindOf(plan)} ${Math.min(INDEXED_LENGTH, ...plan.words.map(lengthOf))}`;
  }
}

function pageKindOf({ kind, type, conditions, sort, page, perPage }: ListPlan | SearchPlan): string {
  const order = sort === null ? "" : `${sort.descending ? "-" : ""}${sort.column.name}`;
  const digits = String(page * BigInt(perPage)).length;
  return `${kind} ${type.slug} ${conditions.map(nameOf).join(",")} ${order} ${digits}`;
}

function nameOf(condition: Condition): string {
  const { kind, column } = condition;
  return `${column.name} ${kind === "equals" ? `${kind} ${condition.negated}` : condition.operator}`;
}
