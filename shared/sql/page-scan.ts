/** Builds a page that a scan in the list's order finds: from the start, from the nearer end, or until it takes too long. */
import { fromSql } from "./matching.ts";
import { type List, nearerEndSql } from "./nearer-end.ts";
import { keysSql, type SortKey } from "./order.ts";
import { limitSql, placesSql, type Statement } from "./page-query.ts";

/** `length` is null when the length of the list is not known or not needed. */
type Scan = Pick<List, "keys"> & { readonly length: string | null };

/** SQL of the ids of a page with their places, found by a scan in the list's order. */
export function scanSql(statement: Statement, matching: readonly string[], { keys, length }: Scan): string {
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
