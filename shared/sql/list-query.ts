/** Builds the queries of lists: a page in its order and the total, through indexes where they can serve. */
import { isNegated } from "../condition.ts";
import type { ListPlan } from "../plan.ts";
import type { Query } from "../query.ts";
import { hasGenericPlan, isChosenByTotal, isReadDirectly, scannedShare } from "./access-path.ts";
import { isSmallSql, totalOf } from "./counts.ts";
import { fewOrManySql } from "./few-or-many.ts";
import { isTrigramServed, storedIn, testOf, textsIn } from "./indexed.ts";
import { keptTotal, keptWithValue } from "./kept-total.ts";
import { type List, nearerEndSql } from "./nearer-end.ts";
import { keysSql, NEWEST_FIRST, type SortKey, sortKeys } from "./order.ts";
import {
  gatheredSql,
  limitSql,
  offsetSql,
  type Parts,
  pageQuery,
  placedSql,
  placesSql,
  recurring,
  type Statement,
  statementOf,
} from "./page-query.ts";
import type { Slots } from "./slots.ts";

const NEWEST = keysSql(NEWEST_FIRST);

/** Builds the query of one page of a list. Its rows are those of pageQuery. */
export function listQuery(appKey: string, plan: ListPlan, slots: Slots): Query {
  const statement = statementOf(appKey, plan, slots);
  const texts = textsIn(plan.conditions);
  // Only the trigram index finds a part of a text: with no alternative, planning for each value only costs time.
  const isTrigram = plan.conditions.length === 1 && texts.some(isTrigramServed);
  const tests = plan.conditions.map((condition) => testOf(condition, slots, statement.values.bind, isTrigram));
  const matching = tests.map(({ sql }) => sql);
  const isElement = tests.length === 1 && tests.some(({ index }) => index === "elements");
  const scanTests = isElement ? matching.map(hiddenSql) : matching;
  const isServed = isElement || tests.every(({ index }) => index === "ordered");
  const stored = isServed ? storedIn(plan.sort.column, slots) : null;
  const parts =
    stored === null
      ? unindexedSql(statement, matching, plan)
      : indexedSql(statement, matching, { plan, slots, stored, scanTests, isElement });
  const isGeneric =
    stored === null ? tests.every(({ index }) => index === "trigram") && isTrigram : hasGenericPlan(plan);
  // Any plan is fast for a small type, if its indexes begin with the type; the index of elements does not.
  const isSmall = slots.isSmall && stored !== null && !isElement && !isGeneric;
  const premise = isSmall ? { premise: isSmallSql(statement.typeId) } : {};
  return recurring(pageQuery(statement, { ...parts, ...premise }), texts, isGeneric || isSmall);
}

/** Hides a test from the planner: a scan in the list's order checks it, and no index on the test is used instead. */
function hiddenSql(test: string): string {
  return `CASE WHEN ${test} THEN true ELSE false END`;
}

function unindexedSql(statement: Statement, matching: readonly string[], { sort }: ListPlan): Parts {
  return gatheredSql(statement, [fromSql(statement, matching)], "e.id", sortKeys(sort));
}

type Indexed = {
  readonly plan: ListPlan;
  readonly slots: Slots;
  /** SQL of the entries column that the list is sorted by. */
  readonly stored: string;
  /** The tests of the conditions, for a scan in the list's order. */
  readonly scanTests: readonly string[];
  /** Whether the condition is on an element, for which no order has an index. */
  readonly isElement: boolean;
};

/**
 * Builds the parts of a list that indexes serve. The total is computed first, in a common table, if kept counts give it
 * (it then also tells which end of the list is nearer) or if the way to find the page depends on it.
 */
function indexedSql(statement: Statement, matching: readonly string[], indexed: Indexed): Parts {
  const { plan, slots } = indexed;
  const kept = keptTotal(plan.conditions, slots, statement.values.bind);
  const first = kept ?? totalSql(statement, matching, plan, slots);
  const isFirst = kept !== null || isChosenByTotal(plan);
  const total = isFirst ? "SELECT total FROM whole" : null;
  const { tables, ...ordered } = orderedSql(statement, matching, { ...indexed, total });
  return {
    ...ordered,
    tables: [...(isFirst ? [`whole AS MATERIALIZED (${first})`] : []), ...tables],
    total: total ?? first,
  };
}

type OrderedParts = Omit<Parts, "total">;
/** `total` is SQL of one row `total`; null when the total is not computed before the page. */
type Ordered = Indexed & { readonly total: string | null };

/** Builds a page whose order an index gives. */
function orderedSql(statement: Statement, matching: readonly string[], ordered: Ordered): OrderedParts {
  const { plan, slots, stored, scanTests, isElement, total } = ordered;
  const { sort, conditions } = plan;
  if (isReadDirectly(plan)) return { tables: [], ...directSql(statement, scanTests) };
  const key: SortKey = { value: stored, direction: sort.descending ? "DESC" : "ASC" };
  const keys = sort.column.name === "published_at" ? NEWEST_FIRST : [key, ...NEWEST_FIRST];
  // The first page is always read from the start, so it needs no length.
  const known = (length: string | null) => (statement.offset === 0n ? null : length);
  const placesOf = (more: readonly string[], length: string | null) => {
    const from = (test: string) => fromSql(statement, [...matching, ...more, test]);
    const scan = (tests: readonly string[], most: string | null) =>
      most === null
        ? idsSql(statement, [...scanTests, ...more, ...tests], { keys, length })
        : endingScanSql(statement, matching, { keys, length, more: [...more, ...tests], most });
    if (total === null || !isChosenByTotal(plan)) return scan([], null);
    const offset = `${offsetSql(statement)}::float8`;
    const before = length === null ? offset : `least(${offset}, total - ${offset})`;
    return fewOrManySql(statement, {
      from,
      scan: (test, most) => scan([test], most),
      keys,
      total,
      before,
      share: scannedShare(plan),
      ends: isElement,
    });
  };
  if (sort.column.type === "timestamp") return { tables: [], ...placedSql(statement, placesOf([], known(total))) };
  const valued = [`${stored} IS NOT NULL`];
  // Every entry that passes a condition on the sort column, unless negated, has a value in it.
  if (conditions.some((condition) => condition.column.name === sort.column.name && !isNegated(condition)))
    return { tables: [], ...placedSql(statement, placesOf(valued, known(total))) };
  const kept = conditions.length === 0 ? keptWithValue(sort.column, slots) : null;
  const length = kept === null ? null : "SELECT total FROM held";
  const before = length ?? countSql(statement, [...matching, ...valued]);
  const ids = `
  SELECT id, place FROM valued
  UNION ALL
  SELECT id, ${statement.perPage} + place FROM (${valuelessSql(statement, [...matching, `${stored} IS NULL`], before)}) AS behind`;
  return {
    tables: [
      ...(kept === null ? [] : [`held AS MATERIALIZED (${kept})`]),
      `valued AS MATERIALIZED (${placesOf(valued, known(length))})`,
    ],
    ...placedSql(statement, ids),
  };
}

function directSql(statement: Statement, matching: readonly string[]): Omit<OrderedParts, "tables"> {
  const page = `
  SELECT ${statement.columns}, e.published_at AS instant, e.id AS uuid
  ${fromSql(statement, matching)}
  ORDER BY ${NEWEST} ${limitSql(statement)}`;
  return { page, order: "page.instant DESC, page.uuid" };
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

/**
 * SQL of one row `total`, found by counting entries. If the only condition is a negated equality, the entries that it
 * excludes are counted instead and subtracted from the kept total of the type.
 */
function totalSql(statement: Statement, matching: readonly string[], { conditions }: ListPlan, slots: Slots): string {
  const { bind } = statement.values;
  const [only, ...others] = conditions;
  if (only?.kind !== "equals" || !only.negated || others.length > 0) return countSql(statement, matching);
  const { sql } = testOf({ ...only, negated: false }, slots, bind);
  return `SELECT all_of_them.total - excluded.total AS total
  FROM (${totalOf(statement.typeId)}) AS all_of_them, (${countSql(statement, [sql])}) AS excluded`;
}

function countSql(statement: Statement, matching: readonly string[]): string {
  return `SELECT count(*) AS total ${fromSql(statement, matching)}`;
}

/** `length` is null when the length of the list is not known or not needed. */
type Scan = Pick<List, "keys"> & { readonly length: string | null };

/** SQL of the ids of a page with their places, found by a scan in the list's order. */
function idsSql(statement: Statement, matching: readonly string[], { keys, length }: Scan): string {
  return pagedSql(statement, () => fromSql(statement, matching), { keys, length });
}

/** `most` is SQL of the number of entries after which the scan ends; `more` holds tests that its index serves. */
type EndingScan = Scan & { readonly more: readonly string[]; readonly most: string };

/** SQL of the ids of a page with their places, by a scan that tests the conditions of no more entries than `most`. */
function endingScanSql(statement: Statement, matching: readonly string[], ending: EndingScan): string {
  const { more, most } = ending;
  const from = (keys: readonly SortKey[]) => {
    const columns = new Set(["e.id", "e.data", ...keys.map(({ value }) => value)]);
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

function fromSql({ typeId }: Statement, matching: readonly string[]): string {
  const published = `e.content_type_id = ${typeId} AND e.status = 'published'`;
  return `FROM precast.entries AS e WHERE ${[published, ...matching].join("\n    AND ")}`;
}
