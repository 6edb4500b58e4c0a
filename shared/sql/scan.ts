/**
 * Builds pages that a scan in the list's order finds: from the start, from the nearer end, until it takes too long, or
 * only where finding all matches takes longer (the adaptive plan).
 */
import { keptTotalSql } from "./columns.ts";
import {
  fromSql,
  keyColumns,
  keysSql,
  limitSql,
  offsetSql,
  placesSql,
  reversed,
  type SortKey,
  type Statement,
} from "./page.ts";

/** FROM and WHERE of the matching entries `e`, for a scan in this order; a further test can be appended with AND. */
type From = (keys: readonly SortKey[]) => string;

/**
 * SQL of the ids of a page with their places. `length` is SQL of one row `total`, the number of entries in the list, whose
 * keys are then never NULL: the last page costs no more than the first. Null when it is not known or not needed.
 */
export function scanSql(statement: Statement, from: From, keys: readonly SortKey[], length: string | null): string {
  if (length !== null) return nearerEndSql(statement, from, keys, length);
  return placesSql(`SELECT e.id ${from(keys)}
    ORDER BY ${keysSql(keys)} ${limitSql(statement)}`);
}

/**
 * Places ascend in the list's order, from the start or from minus the page size. PostgreSQL does not run the branch whose
 * test on the total is false.
 */
function nearerEndSql(statement: Statement, from: From, keys: readonly SortKey[], length: string): string {
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

/** What a scan that ends reads, and tests after that. */
type Ending = {
  /** The tests that the index of the scan serves. */
  readonly served: readonly string[];
  readonly tests: readonly string[];
  /** SQL of the number of entries after which the scan ends. */
  readonly most: string;
  /** The columns that `tests` read besides the id and the sort keys. */
  readonly read: readonly string[];
};

/** FROM and WHERE of a scan that tests no more entries than `most`. */
export function endingFrom(statement: Statement, { served, tests, most, read }: Ending): From {
  return (keys) => {
    const columns = new Set(["e.id", ...read, ...keys.map(({ value }) => value)]);
    return `FROM (SELECT ${[...columns].join(", ")} ${fromSql(statement, served)}
      ORDER BY ${keysSql(keys)} LIMIT ${most}) AS e WHERE ${tests.join(" AND ")}`;
  };
}

// The adaptive plan builds a page that both a filter's index and a scan in the list's order can find. If many entries
// match, the scan soon meets enough of them; if few do, finding all of them and sorting them is faster. The statement
// contains both ways and chooses by the total when it runs, so one plan fits all values.

type AdaptivePlan = {
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
export function adaptiveSql(statement: Statement, plan: AdaptivePlan): string {
  const { from, scan, keys, total, before, share, pace, ends } = plan;
  const passed = `(${before} + ${statement.perPage})::float8 * ${share} * (${keptTotalSql(statement.typeId)})`;
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
