/**
 * Builds the queries of lists: a page in its order, and the total. `choose` decides how the page is found, and each
 * strategy is a function that says why.
 */
import { type Condition, type EqualsCondition, isNegated } from "../api/filter.ts";
import type { ListPlan } from "../api/plan.ts";
import { keptTotalSql, operandsSql, type Slots, storedIn } from "./columns.ts";
import { findIndex, isPrefix, isTrigramServed, testSql, textsIn } from "./conditions.ts";
import { differenceSql, keptWithValue, maintainedCount } from "./counts.ts";
import {
  countSql,
  fromSql,
  gatheredSql,
  keyColumns,
  keysSql,
  limitSql,
  NEWEST_FIRST,
  offsetSql,
  openStatement,
  type Parts,
  pageQuery,
  placedSql,
  placesSql,
  recurring,
  type Statement,
  sortKeys,
  storedKeys,
} from "./page.ts";
import { MAX_PLACEHOLDERS, type Query } from "./query.ts";
import { adaptiveSql, endingFrom, scanSql } from "./scan.ts";

type Strategy = "merged" | "gathered" | "direct" | "ordered" | "adaptive";

/** Builds the query of one page of a list. Its rows are those of pageQuery. */
export function listQuery(appKey: string, plan: ListPlan, slots: Slots): Query {
  const statement = openStatement(appKey, plan, slots);
  const strategy = choose(plan, slots);
  switch (strategy) {
    case "merged":
      return mergedQuery(statement, plan, slots);
    case "gathered":
      return gatheredQuery(statement, plan, slots);
    default:
      return orderedQuery(statement, plan, slots, strategy);
  }
}

function choose(plan: ListPlan, slots: Slots): Strategy {
  if (isMerged(plan, slots)) return "merged";
  if (!isIndexed(plan, slots)) return "gathered";
  if (isInIndexOrder(plan)) return plan.page === 1n ? "direct" : "ordered";
  // A filter's index and a scan in the list's order can both find the page.
  return plan.conditions.some(({ column }) => column.name !== plan.sort.column.name) ? "adaptive" : "ordered";
}

/** Whether an index has the order, and the conditions are all served by such indexes, or one alone by that of elements. */
function isIndexed({ sort, conditions }: ListPlan, slots: Slots): boolean {
  const isServed = isOfElement(conditions, slots) || conditions.every((one) => findIndex(one, slots) === "ordered");
  return isServed && storedIn(sort.column, slots) !== null;
}

/** Whether the only condition is on an element of a `multiple` field. */
function isOfElement([one, ...others]: readonly Condition[], slots: Slots): boolean {
  return one !== undefined && others.length === 0 && findIndex(one, slots) === "elements";
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

/** Most entries that are read to merge a page: for pages far back, reading from the nearer end takes less. */
const MAX_MERGED = 2_000n;

/** Whether the list asks for one of several values, newest first: the index of a slot holds the entries with each so. */
function isMerged({ sort, conditions, page, perPage }: ListPlan, slots: Slots): boolean {
  const [one, ...others] = conditions;
  if (one?.kind !== "equals" || others.length > 0 || sort.column.name !== "published_at") return false;
  if (one.negated || slots.slotOf(one.column) === null) return false;
  const count = one.values.length;
  return count > 1 && count <= MAX_PLACEHOLDERS && BigInt(count) * page * BigInt(perPage) <= MAX_MERGED;
}

/** The page is among the first entries with each value, so no more of them are read. */
function mergedQuery(statement: Statement, { conditions }: ListPlan, slots: Slots): Query {
  const [condition] = conditions as readonly [EqualsCondition];
  const { perPage } = statement;
  const { bind } = statement.values;
  const kept = maintainedCount(conditions, slots, bind);
  const stored = storedIn(condition.column, slots);
  const values = operandsSql(condition, bind);
  const { columns, order } = keyColumns(NEWEST_FIRST);
  const offset = offsetSql(statement);
  const ids = `SELECT candidate.id FROM unnest(${values}) AS wanted (value)
    CROSS JOIN LATERAL (SELECT e.id, ${columns} ${fromSql(statement, [`${stored} = wanted.value`])}
      ORDER BY ${NEWEST} LIMIT ${offset} + ${perPage}) AS candidate
    ORDER BY ${order} LIMIT ${perPage} OFFSET ${offset}`;
  const total = kept ?? countSql(statement, [`${stored} = ANY (${values})`]);
  return recurring(pageQuery(statement, { tables: [], ...placedSql(statement, placesSql(ids)), total }), [], true);
}

const NEWEST = keysSql(NEWEST_FIRST);

/** No index holds the list in its order: all matches are found, then sorted. */
function gatheredQuery(statement: Statement, { conditions, sort }: ListPlan, slots: Slots): Query {
  // Only the trigram index finds a part of a text: with no alternative, planning for each value only costs time.
  const isOnePart = conditions.length === 1 && textsIn(conditions).some(isTrigramServed);
  const tests = conditions.map((one) => testSql(one, slots, statement.values.bind, isOnePart));
  const parts = gatheredSql(statement, [fromSql(statement, tests)], "e.id", sortKeys(sort));
  const isGeneric = isOnePart && conditions.every((one) => findIndex(one, slots) === "trigram");
  return recurring(pageQuery(statement, parts), textsIn(conditions), isGeneric);
}

/** A list whose order an index has. */
type Ordered = {
  readonly plan: ListPlan;
  readonly slots: Slots;
  /** SQL of the entries column that the list is sorted by. */
  readonly stored: string;
  readonly tests: readonly string[];
  /** The tests for a scan in the list's order. */
  readonly scanTests: readonly string[];
  /** SQL of one row `total`; null when the total is not computed before the page. */
  readonly total: string | null;
  readonly isAdaptive: boolean;
};

/**
 * An index holds the list in its order. The total is computed first, in a common table, if a maintained count gives it (it
 * then also tells which end of the list is nearer) or if the way to find the page depends on it.
 */
function orderedQuery(
  statement: Statement,
  plan: ListPlan,
  slots: Slots,
  strategy: "direct" | "ordered" | "adaptive",
): Query {
  const { bind } = statement.values;
  const { conditions, sort } = plan;
  const tests = conditions.map((one) => testSql(one, slots, bind));
  const isElement = isOfElement(conditions, slots);
  const kept = maintainedCount(conditions, slots, bind);
  const first = kept ?? totalSql(statement, tests, plan, slots);
  const total = kept !== null || strategy === "adaptive" ? "SELECT total FROM whole" : null;
  // Elements have no index of their own in the order: the scan checks them.
  const scanTests = isElement ? tests.map(hiddenSql) : tests;
  const list: Ordered = {
    ...{ plan, slots, tests, scanTests, total },
    stored: storedIn(sort.column, slots) as string,
    isAdaptive: strategy === "adaptive",
  };
  const { tables, ...page } = strategy === "direct" ? directPage(statement, list) : orderedPage(statement, list);
  const whole = total === null ? [] : [`whole AS MATERIALIZED (${first})`];
  const query = pageQuery(statement, { ...page, tables: [...whole, ...tables], total: total ?? first });
  // Any plan is fast for a small type, if its indexes begin with the type; the index of elements does not.
  return recurring(query, textsIn(conditions), hasGenericPlan(plan) || (slots.isSmall && !isElement));
}

/** Hides a test from the planner: a scan in the list's order checks it, and no index on the test is used instead. */
function hiddenSql(test: string): string {
  return `CASE WHEN ${test} THEN true ELSE false END`;
}

/**
 * Whether one query plan fits all values: an index holds the list in its order, or the only condition is a prefix, or on
 * a `multiple` field, and the count then decides. Otherwise the values decide which of several indexes is best.
 */
function hasGenericPlan(plan: ListPlan): boolean {
  const [one, ...others] = plan.conditions;
  return one === undefined || (others.length === 0 && (isInIndexOrder(plan) || isPrefix(one) || one.column.multiple));
}

/**
 * SQL of one row `total`, found by counting entries. If the only condition is a negated equality, the entries that it
 * excludes are counted instead and subtracted from the maintained count of the type.
 */
function totalSql(statement: Statement, tests: readonly string[], { conditions }: ListPlan, slots: Slots): string {
  const [only, ...others] = conditions;
  if (only?.kind !== "equals" || !only.negated || others.length > 0) return countSql(statement, tests);
  const excluded = testSql({ ...only, negated: false }, slots, statement.values.bind);
  return differenceSql(keptTotalSql(statement.typeId), countSql(statement, [excluded]));
}

type PageParts = Omit<Parts, "total">;

/** The first page in the order of an index: the scan reads whole rows at once. */
function directPage(statement: Statement, { scanTests }: Ordered): PageParts {
  const page = `
  SELECT ${statement.columns}, e.published_at AS instant, e.id AS uuid
  ${fromSql(statement, scanTests)}
  ORDER BY ${NEWEST} ${limitSql(statement)}`;
  return { tables: [], page, order: "page.instant DESC, page.uuid" };
}

/** Any page in the order of an index: ids are found first, so that whole rows are read for the page alone. */
function orderedPage(statement: Statement, list: Ordered): PageParts {
  const { plan, stored, total } = list;
  // The first page is always read from the start, so it needs no length.
  const length = statement.offset === 0n ? null : total;
  if (plan.sort.column.type !== "timestamp" && !hasValues(plan)) return withValueless(statement, list);
  const valued = plan.sort.column.type === "timestamp" ? [] : [`${stored} IS NOT NULL`];
  return { tables: [], ...placedSql(statement, idsSql(statement, list, valued, length)) };
}

/** Whether all entries have a value in the sort column: every one that passes a condition on it has, unless negated. */
function hasValues({ conditions, sort }: ListPlan): boolean {
  return conditions.some((condition) => condition.column.name === sort.column.name && !isNegated(condition));
}

/**
 * A page of the entries with a value, and behind them of those without. The index of a slot does not contain the latter,
 * so a separate scan finds them, and only if the page reaches that far.
 */
function withValueless(statement: Statement, list: Ordered): PageParts {
  const { plan, slots, stored, tests } = list;
  const valued = [`${stored} IS NOT NULL`];
  const kept = plan.conditions.length === 0 ? keptWithValue(plan.sort.column, slots) : null;
  const length = kept === null ? null : "SELECT total FROM held";
  const before = length ?? countSql(statement, [...tests, ...valued]);
  const behind = valuelessSql(statement, [...tests, `${stored} IS NULL`], before);
  const ids = `
  SELECT id, place FROM valued
  UNION ALL
  SELECT id, ${statement.perPage} + place FROM (${behind}) AS behind`;
  const found = idsSql(statement, list, valued, statement.offset === 0n ? null : length);
  const tables = [...(kept === null ? [] : [`held AS MATERIALIZED (${kept})`]), `valued AS MATERIALIZED (${found})`];
  return { tables, ...placedSql(statement, ids) };
}

/** `before` is SQL of one row `total`: the number of entries with a value. */
function valuelessSql(statement: Statement, valueless: readonly string[], before: string): string {
  const found = "(SELECT count(*) FROM valued)";
  const isShort = `${found} < ${statement.perPage}`;
  const first = `greatest(0, ${offsetSql(statement)} - (${before}))`;
  const limit = `LIMIT ${statement.perPage} - ${found} OFFSET CASE WHEN ${isShort} THEN ${first} END`;
  return placesSql(`SELECT e.id ${fromSql(statement, [...valueless, isShort])}
    ORDER BY ${NEWEST} ${limit}`);
}

/**
 * SQL of the ids of the page with their places: by a scan in the order, or in the way that the total chooses. `valued` are
 * further tests; `length` is SQL of one row `total`, null when it is not known or not needed.
 */
function idsSql(statement: Statement, list: Ordered, valued: readonly string[], length: string | null): string {
  const { plan, slots, stored, tests, scanTests, total, isAdaptive } = list;
  const keys = storedKeys(plan.sort, stored);
  const scan = (...more: string[]) =>
    scanSql(statement, () => fromSql(statement, [...scanTests, ...valued, ...more]), keys, length);
  if (!isAdaptive || total === null) return scan();
  const offset = `${offsetSql(statement)}::float8`;
  return adaptiveSql(statement, {
    from: (test) => fromSql(statement, [...tests, ...valued, test]),
    scan: (test, most) => {
      if (most === null) return scan(test);
      const from = endingFrom(statement, { served: [...valued, test], tests, most, read: ["e.data"] });
      return scanSql(statement, from, keys, length);
    },
    keys,
    total,
    before: length === null ? offset : `least(${offset}, total - ${offset})`,
    share: scannedShare(plan),
    pace: 1,
    ends: isOfElement(plan.conditions, slots),
  });
}

/**
 * Estimated share of an order that a condition on it leaves: right to within a few times, for the real one is unknown.
 */
const NARROWED_SHARE = 1 / 8;

/**
 * Estimated share of a type's entries that a scan in the list's order goes through. It is a part if a condition limits
 * the sort column, or if the list is newest first and a condition asks for one value: its index range has that order.
 */
function scannedShare({ sort, conditions }: ListPlan): number {
  const isNewestFirst = sort.column.name === "published_at";
  const isPart = conditions.some((one) => one.column.name === sort.column.name || (isNewestFirst && isOneValue(one)));
  return isPart ? NARROWED_SHARE : 1;
}
