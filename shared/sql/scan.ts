/** Builds the page of a list whose order an index gives, with the entries without a value in the sort field behind it. */
import { type Condition, isNegated } from "../api/filter.ts";
import type { ListPlan } from "../api/plan.ts";
import { type Slots, totalOf } from "./columns.ts";
import { isOfElements, isPrefix, sqlOf, type Test } from "./conditions.ts";
import { keptWithValue } from "./counts.ts";
import {
  countSql,
  fromSql,
  keyColumns,
  keysSql,
  limitSql,
  NEWEST_FIRST,
  offsetSql,
  type Parts,
  placedSql,
  placesSql,
  reversed,
  type SortKey,
  type Statement,
  storedKeys,
} from "./page.ts";

export type OrderedList = {
  readonly plan: ListPlan;
  readonly slots: Slots;
  /** SQL of the entries column that the list is sorted by. */
  readonly stored: string;
  /** The tests of the conditions: all by an index of that order or of another, or only one, on elements. */
  readonly tests: readonly Test[];
  /** SQL of one row `total`; null when the total is not computed before the page. */
  readonly total: string | null;
};

const NEWEST = keysSql(NEWEST_FIRST);

type PageParts = Omit<Parts, "total">;

export function orderedPageSql(statement: Statement, list: OrderedList): PageParts {
  const { plan, stored, tests, total } = list;
  if (isReadDirectly(plan)) return { tables: [], ...directSql(statement, scanTestsOf(tests)) };
  // The first page is always read from the start, so it needs no length.
  const length = statement.offset === 0n ? null : total;
  if (plan.sort.column.type === "timestamp")
    return { tables: [], ...placedSql(statement, idsSql(statement, list, { tests: [], length })) };
  if (!hasValues(plan)) return withValueless(statement, list);
  const valued = { tests: [`${stored} IS NOT NULL`], length };
  return { tables: [], ...placedSql(statement, idsSql(statement, list, valued)) };
}

/** The tests for a scan in the list's order, for which elements have no index. */
function scanTestsOf(tests: readonly Test[]): string[] {
  return isOfElements(tests) ? sqlOf(tests).map(hiddenSql) : sqlOf(tests);
}

/** Hides a test from the planner: a scan in the list's order checks it, and no index on the test is used instead. */
function hiddenSql(test: string): string {
  return `CASE WHEN ${test} THEN true ELSE false END`;
}

function directSql(statement: Statement, matching: readonly string[]): Omit<PageParts, "tables"> {
  const page = `
  SELECT ${statement.columns}, e.published_at AS instant, e.id AS uuid
  ${fromSql(statement, matching)}
  ORDER BY ${NEWEST} ${limitSql(statement)}`;
  return { page, order: "page.instant DESC, page.uuid" };
}

/** Whether all entries have a value in the sort column: every one that passes a condition on it has, unless negated. */
function hasValues({ conditions, sort }: ListPlan): boolean {
  return conditions.some((condition) => condition.column.name === sort.column.name && !isNegated(condition));
}

/** A page of the entries with a value, and behind them of those without. */
function withValueless(statement: Statement, list: OrderedList): PageParts {
  const { plan, slots, stored } = list;
  const matching = sqlOf(list.tests);
  const valued = [`${stored} IS NOT NULL`];
  const kept = plan.conditions.length === 0 ? keptWithValue(plan.sort.column, slots) : null;
  const length = kept === null ? null : "SELECT total FROM held";
  const before = length ?? countSql(statement, [...matching, ...valued]);
  const known = statement.offset === 0n ? null : length;
  const ids = `
  SELECT id, place FROM valued
  UNION ALL
  SELECT id, ${statement.perPage} + place FROM (${valuelessSql(statement, [...matching, `${stored} IS NULL`], before)}) AS behind`;
  return {
    tables: [
      ...(kept === null ? [] : [`held AS MATERIALIZED (${kept})`]),
      `valued AS MATERIALIZED (${idsSql(statement, list, { tests: valued, length: known })})`,
    ],
    ...placedSql(statement, ids),
  };
}

/**
 * SQL of the page's entries without a value in the sort column, which come after all others. The index of a slot does
 * not contain them, so a separate scan finds them, and only if the page reaches that far. `before` is SQL of one row
 * `total`: the number of entries with a value.
 */
function valuelessSql(statement: Statement, valueless: readonly string[], before: string): string {
  const found = "(SELECT count(*) FROM valued)";
  const isShort = `${found} < ${statement.perPage}`;
  const first = `greatest(0, ${offsetSql(statement)} - (${before}))`;
  const limit = `LIMIT ${statement.perPage} - ${found} OFFSET CASE WHEN ${isShort} THEN ${first} END`;
  return placesSql(`SELECT e.id ${fromSql(statement, [...valueless, isShort])}
    ORDER BY ${NEWEST} ${limit}`);
}

/** `tests` are further ones; `length` is SQL of one row `total`, null when it is not known or not needed. */
type Part = { readonly tests: readonly string[]; readonly length: string | null };

/** SQL of the ids of the page with their places, found in the way that the total chooses where there are two. */
function idsSql(statement: Statement, list: OrderedList, { tests, length }: Part): string {
  const { plan, stored, total } = list;
  const matching = sqlOf(list.tests);
  const scanTests = scanTestsOf(list.tests);
  const keys = storedKeys(plan.sort, stored);
  const scan = (more: readonly string[], most: string | null) =>
    most === null
      ? scanSql(statement, [...scanTests, ...tests, ...more], { keys, length })
      : endingScanSql(statement, matching, { keys, length, more: [...tests, ...more], most, read: ["e.data"] });
  if (total === null || !isChosenByTotal(plan)) return scan([], null);
  const offset = `${offsetSql(statement)}::float8`;
  return fewOrManySql(statement, {
    from: (test) => fromSql(statement, [...matching, ...tests, test]),
    scan: (test, most) => scan([test], most),
    keys,
    total,
    before: length === null ? offset : `least(${offset}, total - ${offset})`,
    share: scannedShare(plan),
    pace: 1,
    ends: isOfElements(list.tests),
  });
}

// Decides from the filters and the order of a list how its page is found: read directly from an index that holds the
// list in its order, by a scan through the order, or through whichever of several indexes is best for the values.

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
function isReadDirectly(plan: ListPlan): boolean {
  return plan.page === 1n && isInIndexOrder(plan);
}

/** Whether both a filter's index and a scan in the list's order can find the page: the total then chooses one. */
export function isChosenByTotal(plan: ListPlan): boolean {
  return plan.conditions.some(({ column }) => column.name !== plan.sort.column.name) && !isInIndexOrder(plan);
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

// Builds a page that both a filter's index and a scan in the list's order can find. If many entries match, the scan
// soon meets enough of them; if few do, finding all of them and sorting them is faster. The statement contains both
// ways and chooses by the total when it runs, so one plan fits all values.

type Ways = {
  /** FROM and WHERE of the matching entries `e`, with `test` added to the conditions. */
  readonly from: (test: string) => string;
  /**
   * SQL of the page's ids and places, found by a scan in the list's order, with `test` added to the conditions. The scan
   * ends after `most` entries, SQL of a number, unless that is null.
   */
  readonly scan: (test: string, most: string | null) => string;
  readonly keys: readonly SortKey[];
  /** SQL of one row `total`: the number of matching entries. */
  readonly total: string;
  /** SQL of a number, which may name `total`: how many matching entries the scan passes before it reaches the page. */
  readonly before: string;
  /** Estimated share of the type's entries that the scan goes through; 1 means all. */
  readonly share: number;
  /** How many entries the scan passes in the time that finding one takes. */
  readonly pace: number;
  /** Whether the scan may have to pass far more entries than `share` says, and then ends before it has found the page. */
  readonly ends: boolean;
};

/** A scan that ends has passed so many times as many entries as match: finding all matches would have been faster. */
const PATIENCE = 2;

/**
 * SQL of the page's ids, with places that ascend in the list's order. PostgreSQL does not run the branch whose test on
 * the total is false.
 */
export function fewOrManySql(statement: Statement, ways: Ways): string {
  const { from, scan, keys, total, before, share, pace, ends } = ways;
  const passed = `(${before} + ${statement.perPage})::float8 * ${share} * (${totalOf(statement.typeId)})`;
  const isMany = `(SELECT total::float8 * total * ${pace} > ${passed} FROM (${total}) AS list)`;
  const { columns, order } = keyColumns(keys);
  // OFFSET 0 keeps the planner from merging the subquery: the matches are found first and then sorted.
  const few = (test: string) => `SELECT id FROM (SELECT e.id, ${columns} ${from(test)} OFFSET 0) AS few
    ORDER BY ${order} ${limitSql(statement)}`;
  if (!ends)
    return `
  SELECT id, place FROM (${scan(isMany, null)}) AS walked
  UNION ALL
  SELECT id, place FROM (${placesSql(few(`NOT ${isMany}`))}) AS found`;
  const most = `(SELECT (${PATIENCE * pace} * total)::bigint FROM (${total}) AS list)`;
  const wanted = `(SELECT least(${statement.perPage}, total - ${offsetSql(statement)}) FROM (${total}) AS list)`;
  const isFound = `(SELECT count(*) FROM walked) >= ${wanted}`;
  return `
  WITH walked AS MATERIALIZED (${scan(isMany, most)})
  SELECT id, place FROM walked WHERE ${isFound}
  UNION ALL
  SELECT id, place FROM (${placesSql(few(`NOT (${isFound})`))}) AS found`;
}

// Builds a page that a scan in the list's order finds: from the start, from the nearer end, or until it takes too
// long.

/** `length` is null when the length of the list is not known or not needed. */
type Scan = Pick<List, "keys"> & { readonly length: string | null };

/** SQL of the ids of a page with their places, found by a scan in the list's order. */
function scanSql(statement: Statement, matching: readonly string[], { keys, length }: Scan): string {
  return pagedSql(statement, () => fromSql(statement, matching), { keys, length });
}

/**
 * `most` is SQL of the number of entries after which the scan ends; `more` holds tests that its index serves. `read` are
 * the columns that the conditions read besides the id and the sort keys.
 */
type EndingScan = Scan & {
  readonly more: readonly string[];
  readonly most: string;
  readonly read: readonly string[];
};

/** SQL of the ids of a page with their places, by a scan that tests the conditions of no more entries than `most`. */
export function endingScanSql(statement: Statement, matching: readonly string[], ending: EndingScan): string {
  const { more, most, read } = ending;
  const from = (keys: readonly SortKey[]) => {
    const columns = new Set(["e.id", ...read, ...keys.map(({ value }) => value)]);
    return `FROM (SELECT ${[...columns].join(", ")} ${fromSql(statement, more)}
      ORDER BY ${keysSql(keys)} LIMIT ${most}) AS e WHERE ${matching.join(" AND ")}`;
  };
  return pagedSql(statement, from, ending);
}

function pagedSql(statement: Statement, from: List["from"], { keys, length }: Scan): string {
  if (length !== null) return nearerEndSql(statement, { from, keys, length });
  return placesSql(`SELECT e.id ${from(keys)}
    ORDER BY ${keysSql(keys)} ${limitSql(statement)}`);
}

// Builds a page of a list of known length, read from the nearer end: the last page costs no more than the first.

type List = {
  /** FROM and WHERE of the matching entries `e`, for a scan in this order; a further test can be appended with AND. */
  readonly from: (keys: readonly SortKey[]) => string;
  /** Their values are never NULL. */
  readonly keys: readonly SortKey[];
  /** SQL of one row `total`: the number of entries in the list. */
  readonly length: string;
};

/**
 * SQL of the page's ids, with places that ascend in the list's order. PostgreSQL does not run the branch whose test on
 * the total is false.
 */
function nearerEndSql(statement: Statement, { from, keys, length }: List): string {
  const { perPage } = statement;
  const offset = offsetSql(statement);
  const total = `(SELECT total FROM (${length}) AS list)`;
  const rest = `greatest(0, ${total} - ${offset})`;
  const back = reversed(keys);
  const forward = `SELECT e.id ${from(keys)}
    AND ${total} / 2 > ${offset}
    ORDER BY ${keysSql(keys)} LIMIT ${perPage} OFFSET ${offset}`;
  const backward = `SELECT e.id ${from(back)}
    AND ${total} / 2 <= ${offset}
    ORDER BY ${keysSql(back)} LIMIT least(${perPage}, ${rest}) OFFSET greatest(0, ${rest} - ${perPage})`;
  return `
  SELECT id, place FROM (${placesSql(forward)}) AS forward
  UNION ALL
  SELECT id, -place FROM (${placesSql(backward)}) AS backward`;
}
