/** Builds the SQL of the entries of a list: the published ones of its type that pass the tests of its conditions. */
import type { Statement } from "./page-query.ts";

/** FROM and WHERE of the matching entries `e`. */
export function fromSql({ typeId }: Pick<Statement, "typeId">, tests: readonly string[]): string {
  const published = `e.content_type_id = ${typeId} AND e.status = 'published'`;
  return `FROM precast.entries AS e WHERE ${[published, ...tests].join("\n    AND ")}`;
}

/** SQL of one row `total`, found by counting the matching entries. */
export function countSql(statement: Pick<Statement, "typeId">, tests: readonly string[]): string {
  return `SELECT count(*) AS total ${fromSql(statement, tests)}`;
}
