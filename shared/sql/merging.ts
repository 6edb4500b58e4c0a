/**
 * Decides whether the page of a list can be merged from parts of an index, each of which holds the entries with one value
 * in the list's order.
 */
import type { Column } from "../catalog.ts";
import type { Condition, EqualsCondition } from "../condition.ts";
import type { ListPlan } from "../plan.ts";
import type { SlotPair } from "./pair-index.ts";
import type { Slots } from "./slots.ts";
import { MAX_PLACEHOLDERS } from "./where.ts";

export type Merging = {
  /** The condition that names the values. */
  readonly condition: EqualsCondition;
  /** The slots of the index that is needed, which may not exist; null for the index that every slot has. */
  readonly pair: SlotPair | null;
};

/** Most entries that are read to merge a page newest first: for pages far back, nearer-end.ts reads less. */
const MAX_NEWEST = 2_000n;

/** The same, in the order of an index on two fields, for which all matches have to be counted anyway. */
const MAX_BY_PAIR = 100_000n;

/**
 * How the page of a list can be merged; null when it cannot. The index of a slot holds the entries with each value
 * newest first. An index on two slots holds them in the order of the second, which may be limited too.
 */
export function mergingOf(plan: ListPlan, slots: Slots): Merging | null {
  const { sort, conditions } = plan;
  const condition = conditions.find(isAnyOfFew);
  const value = condition === undefined ? null : slots.slotOf(condition.column);
  if (condition === undefined || value === null) return null;
  const others = conditions.filter((other) => other !== condition);
  const read = BigInt(condition.values.length) * plan.page * BigInt(plan.perPage);
  if (sort.column.name === "published_at") {
    const isMerged = others.length === 0 && condition.values.length > 1 && read <= MAX_NEWEST;
    return isMerged ? { condition, pair: null } : null;
  }
  const order = slots.slotOf(sort.column);
  const isLimited = others.length > 0 && others.every((other) => isRangeOf(other, sort.column));
  if (!isLimited || order === null || order === value || slots.isSmall || read > MAX_BY_PAIR) return null;
  return { condition, pair: { value, order } };
}

/** Whether the condition asks for one of the values, and each of them gets a placeholder. */
function isAnyOfFew(condition: Condition): condition is EqualsCondition {
  if (condition.kind !== "equals" || condition.negated || condition.column.multiple) return false;
  return condition.values.length > 0 && condition.values.length <= MAX_PLACEHOLDERS;
}

/** Whether the condition limits a column to a range of the order of its slot. */
function isRangeOf({ kind, column }: Condition, { name }: Column): boolean {
  return kind === "order" && column.name === name && ["number", "date", "datetime"].includes(column.type);
}
