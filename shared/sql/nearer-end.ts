/** A page of a list whose length is known, found from the end that is nearer: the last page is then as near as the first. */
import { keysSql, reversed, type SortKey } from "./order.ts";
import { offsetSql, placesSql, type Statement } from "./page-query.ts";

export type List = {
  /** FROM and WHERE of entries `e`, as SQL that takes one test more. */
  readonly from: string;
  /** None is ever null. */
  readonly keys: readonly SortKey[];
  /** SQL of one row `total`. */
  readonly length: string;
};

/** Ids with places that are in the list's order. A branch whose test on the total fails is not run. */
export function nearerEndSql(statement: Statement, { from, keys, length }: List): string {
  const { perPage } = statement;
  const offset = offsetSql(statement);
  const total = `(SELECT total FROM (${length}) AS list)`;
  const rest = `greatest(0, ${total} - ${offset})`;
  const forward = `SELECT e.id ${from}
    AND ${total} / 2 > ${offset}
    ORDER BY ${keysSql(keys)} LIMIT ${perPage} OFFSET ${offset}`;
  const backward = `SELECT e.id ${from}
    AND ${total} / 2 <= ${offset}
    ORDER BY ${keysSql(reversed(keys))} LIMIT least(${perPage}, ${rest}) OFFSET greatest(0, ${rest} - ${perPage})`;
  return `
  SELECT id, place FROM (${placesSql(forward)}) AS forward
  UNION ALL
  SELECT id, -place FROM (${placesSql(backward)}) AS backward`;
}
