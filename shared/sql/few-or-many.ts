/**
 * A page that both a filter and an order may find: where many match, the order comes to enough of them soon; where few do, they are
 * found and sorted. A plan that does for all values takes either way, each for those that it is made for.
 */
import { keyColumns, type SortKey } from "./order.ts";
import { limitSql, placesSql, type Statement } from "./page-query.ts";
import { totalOf } from "./query.ts";

export type Ways = {
  /** FROM and WHERE of entries `e`, with one test more. */
  readonly from: (test: string) => string;
  /** Ids with places, found in their order, with one test more. */
  readonly walk: (test: string) => string;
  readonly keys: readonly SortKey[];
  /** SQL of one row `total`: how many match. */
  readonly total: string;
};

/** So many entries are passed in the order of an index in the time in which one is found and sorted, about. */
const PASSED = 16;

/** Ids with places that are in the list's order. A branch whose test on the total fails is not run. */
export function fewOrManySql(statement: Statement, { from, walk, keys, total }: Ways): string {
  const passed = `${statement.perPage} * (${totalOf(statement.typeId)})`;
  const isMany = `(SELECT total::float8 * total * ${PASSED} > ${passed} FROM (${total}) AS list)`;
  const { columns, order } = keyColumns(keys);
  // OFFSET 0 has them found before they are sorted.
  const few = `SELECT id FROM (SELECT e.id, ${columns} ${from(`NOT ${isMany}`)} OFFSET 0) AS few
    ORDER BY ${order} ${limitSql(statement)}`;
  return `
  SELECT id, place FROM (${walk(isMany)}) AS walked
  UNION ALL
  SELECT id, place FROM (${placesSql(few)}) AS found`;
}
