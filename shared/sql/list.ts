/** Builds the queries of lists: a page in its order and the total, through indexes where they can serve. */
import type { Column } from "../api/catalog.ts";
import type { Condition, EqualsCondition } from "../api/filter.ts";
import type { ListPlan } from "../api/plan.ts";
import { operandsSql, type Slots, storedIn, totalOf } from "./columns.ts";
import { isOfElements, isTrigramServed, sqlOf, type Test, testOf, textsIn } from "./conditions.ts";
import { differenceSql, editionOf, keptTotal } from "./counts.ts";
import {
  countSql,
  fromSql,
  gatheredSql,
  keyColumns,
  keysSql,
  offsetSql,
  type Parts,
  pageQuery,
  placedSql,
  placesSql,
  recurring,
  type Statement,
  sortKeys,
  statementOf,
  storedKeys,
} from "./page.ts";
import { type Bind, MAX_PLACEHOLDERS, type Query } from "./query.ts";
import { hasGenericPlan, isChosenByTotal, type OrderedList, orderedPageSql, type Place } from "./scan.ts";

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

// Builds a merged page (merging.ts): it is among the first entries with each value.

function mergedParts(statement: Statement, plan: ListPlan, slots: Slots, { condition }: Merging): Parts {
  const { perPage } = statement;
  const { bind } = statement.values;
  const kept = keptTotal(plan.conditions, slots, bind);
  const stored = storedIn(condition.column, slots);
  const values = operandsSql(condition, bind);
  const others = plan.conditions.filter((other) => other !== condition);
  const tests = others.map((other) => testOf(other, slots, bind).sql);
  const keys = storedKeys(plan.sort, storedIn(plan.sort.column, slots) as string);
  const { columns, order } = keyColumns(keys);
  const offset = offsetSql(statement);
  const ids = `SELECT candidate.id FROM unnest(${values}) AS wanted (value)
    CROSS JOIN LATERAL (SELECT e.id, ${columns} ${fromSql(statement, [`${stored} = wanted.value`, ...tests])}
      ORDER BY ${keysSql(keys)} LIMIT ${offset} + ${perPage}) AS candidate
    ORDER BY ${order} LIMIT ${perPage} OFFSET ${offset}`;
  const total = kept ?? countSql(statement, [`${stored} = ANY (${values})`, ...tests]);
  return { tables: [], ...placedSql(statement, placesSql(ids)), total };
}

// Decides whether the page of a list can be merged from parts of an index, each of which holds the entries with one
// value in the list's order.

type Merging = {
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
function mergingOf(plan: ListPlan, slots: Slots): Merging | null {
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

// An index for one large type that holds its entries by the value in one slot and, for each value, in the order of
// another. Operators create it where `doctor` says that it pays, and queries rely on it once it exists.

/** Two slots of a type: the entries with one value in the first are in the order of the second. */
type SlotPair = { readonly value: string; readonly order: string };

export function pairIndexName(typeId: string, { value, order }: SlotPair): string {
  return `entries_of_${typeId}_by_${value}_${order}`;
}

/** SQL of a boolean: whether the index exists and is complete. */
function hasPairIndexSql(typeId: string, pair: SlotPair): string {
  const index = `to_regclass('precast.${pairIndexName(typeId, pair)}')`;
  return `EXISTS (SELECT FROM pg_catalog.pg_index WHERE indexrelid = ${index} AND indisvalid)`;
}
