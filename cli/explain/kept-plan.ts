/** The plan that a connection keeps of a query, explained: it does for any values, and stands in a prepared statement alone. */
import { type Query, type Row, type Session, sql } from "../../shared/database/database.ts";
import { literalOf } from "../../shared/database/postgres/literal.ts";
import { settingSql } from "../../shared/database/postgres/planning.ts";

/** `how` is EXPLAIN with its options. In a transaction of PostgreSQL. */
export async function explainKept(session: Session, { text, values }: Query, how: string): Promise<Row[]> {
  await session.execute(`DEALLOCATE ALL; PREPARE explained AS ${text}; ${settingSql("once", "SET LOCAL")}`);
  // EXECUTE takes no parameters of its own.
  return session.query(sql(`${how} EXECUTE explained (${values.map(literalOf).join(", ")})`));
}
