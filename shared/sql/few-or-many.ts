/**
 * Builds a page that both a filter's index and a scan in the list's order can find. If many entries match, the scan
 * soon meets enough of them; if few do, finding all of them and sorting them is faster. The statement contains both
 * ways and chooses by the total when it runs, so one plan fits all values.
 */
import { totalOf } from "./counts.ts";
import { keyColumns, type SortKey } from "./order.ts";
import { limitSql, offsetSql, placesSql, type Statement } from "./page-query.ts";

export type Ways = {
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
