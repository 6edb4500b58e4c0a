/** Builds the queries of lists: a page in its order and the total, through indexes where they can serve. */
import type { Condition, EqualsCondition } from "../api/filter.ts";
import type { ListPlan } from "../api/plan.ts";
import { operandsSql, type Slots, storedIn, totalOf } from "./columns.ts";
import { isOfElements, isTrigramServed, sqlOf, type Test, testOf, textsIn } from "./conditions.ts";
import { differenceSql, keptTotal } from "./counts.ts";
import {
  countSql,
  fromSql,
  gatheredSql,
  keyColumns,
  keysSql,
  NEWEST_FIRST,
  offsetSql,
  type Parts,
  pageQuery,
  placedSql,
  placesSql,
  recurring,
  type Statement,
  sortKeys,
  statementOf,
} from "./page.ts";
import { type Bind, MAX_PLACEHOLDERS, type Query } from "./query.ts";
import { hasGenericPlan, isChosenByTotal, type OrderedList, orderedPageSql } from "./scan.ts";

/** Builds the query of one page of a list. Its rows are those of pageQuery. */
export function listQuery(appKey: string, plan: ListPlan, slots: Slots): Query {
  const statement = statementOf(appKey, plan, slots);
  const condition = mergedCondition(plan, slots);
  if (condition !== null)
    return recurring(pageQuery(statement, mergedParts(statement, plan, slots, condition)), [], true);
  const tests = testsOf(plan, slots, statement.values.bind);
  const isServed = isOfElements(tests) || tests.every(({ index }) => index === "ordered");
  const stored = isServed ? storedIn(plan.sort.column, slots) : null;
  return stored === null
    ? gatheredQuery(statement, plan, tests)
    : orderedQuery(statement, { plan, slots, stored, tests });
}

function testsOf({ conditions }: ListPlan, slots: Slots, bind: Bind): Test[] {
  return conditions.map((condition) => testOf(condition, slots, bind, isOnePart(conditions)));
}

/**
 * Whether the only condition is on a part of a text. Only the trigram index finds it: with no alternative, planning for
 * each value only costs time.
 */
function isOnePart(conditions: readonly Condition[]): boolean {
  return conditions.length === 1 && textsIn(conditions).some(isTrigramServed);
}

/** The query of a list that no index holds in its order. */
function gatheredQuery(statement: Statement, { conditions, sort }: ListPlan, tests: readonly Test[]): Query {
  const parts = gatheredSql(statement, [fromSql(statement, sqlOf(tests))], "e.id", sortKeys(sort));
  const isGeneric = isOnePart(conditions) && tests.every(({ index }) => index === "trigram");
  return recurring(pageQuery(statement, parts), textsIn(conditions), isGeneric);
}

/** The query of a list whose order an index has. */
function orderedQuery(statement: Statement, list: Omit<OrderedList, "total">): Query {
  const { plan, slots, tests } = list;
  const isGeneric = hasGenericPlan(plan);
  // Any plan is fast for a small type, if its indexes begin with the type; the index of elements does not.
  const isSmall = slots.isSmall && !isOfElements(tests) && !isGeneric;
  const parts = orderedParts(statement, list);
  return recurring(pageQuery(statement, parts), textsIn(plan.conditions), isGeneric || isSmall);
}

/**
 * Builds the parts of a list that indexes serve. The total is computed first, in a common table, if kept counts give it
 * (it then also tells which end of the list is nearer) or if the way to find the page depends on it.
 */
function orderedParts(statement: Statement, list: Omit<OrderedList, "total">): Parts {
  const { plan, slots, tests } = list;
  const kept = keptTotal(plan.conditions, slots, statement.values.bind);
  const first = kept ?? totalSql(statement, sqlOf(tests), plan, slots);
  const isFirst = kept !== null || isChosenByTotal(plan);
  const total = isFirst ? "SELECT total FROM whole" : null;
  const { tables, ...page } = orderedPageSql(statement, { ...list, total });
  return {
    ...page,
    tables: [...(isFirst ? [`whole AS MATERIALIZED (${first})`] : []), ...tables],
    total: total ?? first,
  };
}

/**
 * SQL of one row `total`, found by counting entries. If the only condition is a negated equality, the entries that it
 * excludes are counted instead and subtracted from the kept total of the type.
 */
function totalSql(statement: Statement, matching: readonly string[], { conditions }: ListPlan, slots: Slots): string {
  const { bind } = statement.values;
  const [only, ...others] = conditions;
  if (only?.kind !== "equals" || !only.negated || others.length > 0) return countSql(statement, matching);
  const { sql } = testOf({ ...only, negated: false }, slots, bind);
  return differenceSql(totalOf(statement.typeId), countSql(statement, [sql]));
}

// Builds a merged page: it is among the first entries with each value.

function mergedParts(statement: Statement, plan: ListPlan, slots: Slots, condition: EqualsCondition): Parts {
  const { perPage } = statement;
  const { bind } = statement.values;
  const kept = keptTotal(plan.conditions, slots, bind);
  const stored = storedIn(condition.column, slots);
  const values = operandsSql(condition, bind);
  const { columns, order } = keyColumns(NEWEST_FIRST);
  const offset = offsetSql(statement);
  const ids = `SELECT candidate.id FROM unnest(${values}) AS wanted (value)
    CROSS JOIN LATERAL (SELECT e.id, ${columns} ${fromSql(statement, [`${stored} = wanted.value`])}
      ORDER BY ${keysSql(NEWEST_FIRST)} LIMIT ${offset} + ${perPage}) AS candidate
    ORDER BY ${order} LIMIT ${perPage} OFFSET ${offset}`;
  const total = kept ?? countSql(statement, [`${stored} = ANY (${values})`]);
  return { tables: [], ...placedSql(statement, placesSql(ids)), total };
}

// Decides whether the page of a list can be merged from parts of an index, each of which holds the entries with one
// value in the list's order.

/** Most entries that are read to merge a page: for pages far back, reading from the nearer end takes less. */
const MAX_MERGED = 2_000n;

/** The condition by whose values a page is merged; null when it cannot be. The index of a slot holds each value newest first. */
function mergedCondition({ sort, conditions, page, perPage }: ListPlan, slots: Slots): EqualsCondition | null {
  const [one, ...others] = conditions;
  if (one === undefined || others.length > 0 || sort.column.name !== "published_at" || !isAnyOfSome(one)) return null;
  const read = BigInt(one.values.length) * page * BigInt(perPage);
  return slots.slotOf(one.column) !== null && read <= MAX_MERGED ? one : null;
}

/** Whether the condition asks for one of several values, and each of them gets a placeholder. */
function isAnyOfSome(condition: Condition): condition is EqualsCondition {
  if (condition.kind !== "equals" || condition.negated || condition.column.multiple) return false;
  return condition.values.length > 1 && condition.values.length <= MAX_PLACEHOLDERS;
}
