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
  /** SQL of one number, which may name `total`: how many of those that match the walk comes to before the page. */
  readonly before: string;
  /** Of all entries, about those that the walk goes through: 1 for all. */
  readonly share: number;
};

/**
 * Ids with places that are in the list's order. A branch whose test on the total fails is not run. To pass an entry in an order
 * takes about as long as to find one.
 */
export function fewOrManySql(statement: Statement, { from, walk, keys, total, before, share }: Ways): string {
  const passed = `(${before} + ${statement.perPage})::float8 * ${share} * (${totalOf(statement.typeId)})`;
  const isMany = `(SELECT total::float8 * total > ${passed} FROM (${total}) AS list)`;
  const { columns, order } = keyColumns(keys);
  // OFFSET 0 has them found before they are sorted.
  const few = `SELECT id FROM (SELECT e.id, ${columns} ${from(`NOT ${isMany}`)} OFFSET 0) AS few
    ORDER BY ${order} ${limitSql(statement)}`;
  return `
  SELECT id, place FROM (${walk(isMany)}) AS walked
  UNION ALL
  SELECT id, place FROM (${placesSql(few)}) AS found`;
}
