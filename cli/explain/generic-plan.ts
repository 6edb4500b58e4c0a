/** Explains the generic plan of a query, which a connection keeps for any values. Only prepared statements have one. */
import type { Session } from "../../shared/database/database.ts";
import { literalOf } from "../../shared/database/postgres/literal.ts";
import { planningSql } from "../../shared/database/postgres/planning.ts";
import { type Query, type Row, sql } from "../../shared/query.ts";

let explained = 0;

/** `how` is EXPLAIN with its options. `session` must be in a transaction of PostgreSQL. */
export async function explainGeneric(session: Session, { text, values }: Query, how: string): Promise<Row[]> {
  // A name of its own: the connection may have prepared other statements, which it must keep.
  const name = `explained_${++explained}`;
  await session.execute(`PREPARE ${name} AS ${text}; ${planningSql("generic", "SET LOCAL")}`);
  // EXECUTE accepts no bind parameters, so the values are written as literals.
  return session.query(sql(`${how} EXECUTE ${name} (${values.map(literalOf).join(", ")})`));
}
