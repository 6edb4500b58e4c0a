/**
 * How the page of a list is found, as its filters and its order tell: as an index holds it, on a walk through the order, or by
 * whichever of several indexes is the best for the values.
 */
import { type Condition, isNegated } from "../condition.ts";
import type { ListPlan } from "../plan.ts";

/**
 * Does one way do for all values? An index holds the list as it stands, or elements are counted, and their number tells. Else it
 * depends on the values which of several indexes is the best to begin with.
 */
export function isForAny(plan: ListPlan): boolean {
  const [one, ...others] = plan.conditions;
  return one === undefined || (others.length === 0 && (isWalked(plan) || one.column.multiple));
}

/** Are they all entries by their publication, those with one value of each of some fields, or those without some of one? */
function isWalked({ sort, conditions }: ListPlan): boolean {
  if (sort.column.name !== "published_at") return false;
  return conditions.every(isFound) || (conditions.length === 1 && conditions.some(isNegated));
}

/** Each row that an index gives for it is one of those that are wanted. */
function isFound(condition: Condition): boolean {
  const isOfOne = condition.kind === "equals" && condition.values.length === 1;
  return isOfOne && !condition.negated && !condition.column.multiple;
}

/** Whether an index holds the first page and nothing before it: then its rows are read as they are found. */
export function isRead(plan: ListPlan): boolean {
  return plan.page === 1n && isWalked(plan);
}

/** May both a filter and the order find the page, so that it depends on the total which is the better? */
export function isWeighed(plan: ListPlan): boolean {
  return plan.conditions.some(({ column }) => column.name !== plan.sort.column.name) && !isWalked(plan);
}

/** How much of an order a condition leaves is not known: this is right to a few times as much. */
const NARROWED = 1 / 8;

/** The share of all entries that a walk goes through: a part of the order, or the entries with one value, whose index has it too. */
export function walkedShare({ sort, conditions }: ListPlan): number {
  const isNewestFirst = sort.column.name === "published_at";
  const isPart = conditions.some((one) => one.column.name === sort.column.name || (isNewestFirst && isFound(one)));
  return isPart ? NARROWED : 1;
}
