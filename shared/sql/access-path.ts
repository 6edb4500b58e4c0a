/**
 * Decides from the filters and the order of a list how its page is found: read directly from an index that holds the
 * list in its order, by a scan through the order, or through whichever of several indexes is best for the values.
 */
import { type Condition, isNegated } from "../condition.ts";
import type { ListPlan } from "../plan.ts";
import { isPrefix } from "./prefix.ts";

/**
 * Whether one query plan fits all values: an index holds the list in its order, or the only condition is a prefix, or on
 * a `multiple` field, and the count then decides. Otherwise the values decide which of several indexes is best.
 */
export function hasGenericPlan(plan: ListPlan): boolean {
  const [one, ...others] = plan.conditions;
  return one === undefined || (others.length === 0 && (isInIndexOrder(plan) || isPrefix(one) || one.column.multiple));
}

/**
 * Whether an index holds the list in its order: newest publication first, and no conditions, conditions that all ask
 * for one value each, or a single condition that is negated.
 */
function isInIndexOrder({ sort, conditions }: ListPlan): boolean {
  if (sort.column.name !== "published_at") return false;
  return conditions.every(isOneValue) || (conditions.length === 1 && conditions.some(isNegated));
}

/** Whether the condition asks for exactly one value: an index range then holds its entries, newest first. */
function isOneValue(condition: Condition): boolean {
  const isOfOne = condition.kind === "equals" && condition.values.length === 1;
  return isOfOne && !condition.negated && !condition.column.multiple;
}

/** Whether the page is the first of a list that an index holds in its order: the scan then reads whole rows at once. */
export function isReadDirectly(plan: ListPlan): boolean {
  return plan.page === 1n && isInIndexOrder(plan);
}

/** Whether both a filter's index and a scan in the list's order can find the page: the total then chooses one. */
export function isChosenByTotal(plan: ListPlan): boolean {
  return plan.conditions.some(({ column }) => column.name !== plan.sort.column.name) && !isInIndexOrder(plan);
}

/** Whether a page behind the first is found by a scan in the list's order alone. */
export function isWalked(plan: ListPlan): boolean {
  return plan.page > 1n && !isChosenByTotal(plan);
}

/**
 * Estimated share of an order that a condition on it leaves: right to within a few times, for the real one is unknown.
 */
const NARROWED_SHARE = 1 / 8;

/**
 * Estimated share of a type's entries that a scan in the list's order goes through. It is a part if a condition limits
 * the sort column, or if the list is newest first and a condition asks for one value: its index range has that order.
 */
export function scannedShare({ sort, conditions }: ListPlan): number {
  const isNewestFirst = sort.column.name === "published_at";
  const isPart = conditions.some((one) => one.column.name === sort.column.name || (isNewestFirst && isOneValue(one)));
  return isPart ? NARROWED_SHARE : 1;
}
