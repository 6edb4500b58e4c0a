/** Builds the page of a list whose order an index gives, with the entries without a value in the sort field behind it. */
import { isNegated } from "../condition.ts";
import type { ListPlan } from "../plan.ts";
import { isChosenByTotal, isReadDirectly, scannedShare } from "./access-path.ts";
import { fewOrManySql } from "./few-or-many.ts";
import { isOfElements, sqlOf, type Test } from "./indexed.ts";
import { keptWithValue } from "./kept-total.ts";
import { countSql, fromSql } from "./matching.ts";
import { keysSql, NEWEST_FIRST, storedKeys } from "./order.ts";
import { limitSql, offsetSql, type Parts, placedSql, placesSql, type Statement } from "./page-query.ts";
import { endingScanSql, scanSql } from "./page-scan.ts";
import { type Place, seekSql } from "./seek.ts";
import type { Slots } from "./slots.ts";

export type OrderedList = {
  readonly plan: ListPlan;
  readonly slots: Slots;
  /** SQL of the entries column that the list is sorted by. */
  readonly stored: string;
  /** The tests of the conditions: all by an index of that order or of another, or only one, on elements. */
  readonly tests: readonly Test[];
  /** The place from which the page is read on, null for an end of the list. */
  readonly place: Place | null;
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
  const { plan, stored, place, total } = list;
  const matching = sqlOf(list.tests);
  const scanTests = scanTestsOf(list.tests);
  const keys = storedKeys(plan.sort, stored);
  if (place !== null) return seekSql(statement, [...matching, ...tests], keys, place);
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
