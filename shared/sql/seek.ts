/** Builds a page that is read from an entry on whose place in the list is known, instead of from one of its ends. */
import { fromSql } from "./matching.ts";
import { keyColumns, keysSql, type SortKey } from "./order.ts";
import { placesSql, type Statement } from "./page-query.ts";

/** The entry `id` is the one numbered `after` in a list, counted from 1, while the type has this edition (edition.ts). */
export type Place = { readonly edition: string; readonly after: bigint; readonly id: string };

/** SQL of the ids of the page with their places, for a page behind `place`. */
export function seekSql(
  statement: Statement,
  matching: readonly string[],
  keys: readonly SortKey[],
  { after, id }: Place,
): string {
  const { bind } = statement.values;
  const start = `SELECT ${keyColumns(keys).columns} ${fromSql(statement, [`e.id = ${bind(id)}::uuid`])}`;
  return placesSql(`WITH start AS MATERIALIZED (${start})
    SELECT e.id ${fromSql(statement, [...matching, behindSql(keys)])}
    ORDER BY ${keysSql(keys)} LIMIT ${statement.perPage} OFFSET ${bind(String(statement.offset - after))}::bigint`);
}

/** The test that an entry comes after the start. The comparison of each key alone is one that an index serves. */
function behindSql(keys: readonly SortKey[], first = 0): string {
  const { value, direction } = keys[first] as SortKey;
  const sign = direction.startsWith("ASC") ? ">" : "<";
  const start = `(SELECT key_${first} FROM start)`;
  if (first === keys.length - 1) return `${value} ${sign} ${start}`;
  return `${value} ${sign}= ${start} AND (${value} ${sign} ${start} OR (${behindSql(keys, first + 1)}))`;
}
