/** Builds a page of a list of known length, read from the nearer end: the last page costs no more than the first. */
import { keysSql, reversed, type SortKey } from "./order.ts";
import { offsetSql, placesSql, type Statement } from "./page-query.ts";

export type List = {
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
export function nearerEndSql(statement: Statement, { from, keys, length }: List): string {
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
