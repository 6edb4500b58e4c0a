/** Builds the queries of lists: a page in its order and the total, through indexes where they can serve. */
import type { Condition } from "../condition.ts";
import type { ListPlan } from "../plan.ts";
import type { Query } from "../query.ts";
import { hasGenericPlan, isChosenByTotal } from "./access-path.ts";
import { totalOf } from "./counts.ts";
import { editionOf } from "./edition.ts";
import { isOfElements, sqlOf, type Test, testOf } from "./indexed.ts";
import { differenceSql, keptTotal } from "./kept-total.ts";
import { countSql, fromSql } from "./matching.ts";
import { mergedParts } from "./merged-page.ts";
import { type Merging, mergingOf } from "./merging.ts";
import { sortKeys } from "./order.ts";
import { type OrderedList, orderedPageSql } from "./ordered-page.ts";
import { gatheredSql, type Parts, pageQuery, recurring, type Statement, statementOf } from "./page-query.ts";
import { hasPairIndexSql, pairIndexName } from "./pair-index.ts";
import type { Place } from "./seek.ts";
import type { Slots } from "./slots.ts";
import { storedIn } from "./stored.ts";
import { isTrigramServed, textsIn } from "./trigram.ts";
import type { Bind } from "./where.ts";

/**
 * Builds the query of one page of a list. Its rows are those of pageQuery. If a `place` before the page is known,
 * which must be one that findPlace (places.ts) gives, the query may rely on it. It may also rely on whether there is an
 * index for two slots. It says either as its premise.
 */
export function listQuery(appKey: string, plan: ListPlan, slots: Slots, place: Place | null = null): Query {
  const statement = statementOf(appKey, plan, slots);
  const merging = mergingOf(plan, slots);
  if (merging === null) return chosenQuery(statement, plan, slots, place);
  if (merging.pair === null) return mergedQuery(statement, plan, slots, merging);
  const hasIndex = hasPairIndexSql(slots.typeId, merging.pair);
  return slots.pairIndexes.includes(pairIndexName(slots.typeId, merging.pair))
    ? mergedQuery(statement, plan, slots, merging, hasIndex)
    : chosenQuery(statement, plan, slots, place, `NOT ${hasIndex}`);
}

function mergedQuery(statement: Statement, plan: ListPlan, slots: Slots, merging: Merging, premise?: string): Query {
  return recurring(pageQuery(statement, { ...mergedParts(statement, plan, slots, merging), premise }), [], true);
}

function chosenQuery(statement: Statement, plan: ListPlan, slots: Slots, place: Place | null, premise?: string): Query {
  const tests = testsOf(plan, slots, statement.values.bind);
  const isServed = isOfElements(tests) || tests.every(({ index }) => index === "ordered");
  const stored = isServed ? storedIn(plan.sort.column, slots) : null;
  return stored === null
    ? gatheredQuery(statement, plan, tests)
    : orderedQuery(statement, { plan, slots, stored, tests, place }, premise);
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
function orderedQuery(statement: Statement, list: Omit<OrderedList, "total">, premise?: string): Query {
  const { plan, slots, tests, place } = list;
  const isGeneric = hasGenericPlan(plan);
  // Any plan is fast for a small type, if its indexes begin with the type; the index of elements does not.
  const isSmall = slots.isSmall && !isOfElements(tests) && !isGeneric;
  const parts = orderedParts(statement, list);
  const relied = place === null ? premise : hasEditionSql(statement, place);
  return recurring(pageQuery(statement, { ...parts, premise: relied }), textsIn(plan.conditions), isGeneric || isSmall);
}

function hasEditionSql({ typeId, values }: Statement, { edition }: Place): string {
  return `${editionOf(typeId)} = ${values.bind(edition)}`;
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
