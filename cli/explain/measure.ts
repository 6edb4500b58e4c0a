/** Has the database run a query as the live server does, and tell how. */
import type { Database, Query, Row } from "../../shared/database/database.ts";
import { DatabaseFault, isCancelled } from "../../shared/database/fault.ts";
import { type QueryPlan, readPlan } from "./plan-node.ts";

/**
 * The plan with its times; without them where the query takes longer than the database was opened for. It is the plan by which
 * the live server answers: that for any values where it keeps one, that for these values elsewhere and in the embedded database.
 */
export async function measureQuery(database: Database, query: Query): Promise<QueryPlan> {
  try {
    return await explain(database, query, "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)");
  } catch (error) {
    if (!isLate(error)) throw error;
    return explain(database, query, "EXPLAIN (FORMAT JSON)");
  }
}

async function explain(database: Database, query: Query, how: string): Promise<QueryPlan> {
  const explained = { text: `${how} ${query.text}`, values: query.values };
  // It ends a query that takes too long outside of transactions alone, where what it is set to is everybody's.
  if (database.kind === "embedded") return planIn(await database.query(explained));
  return database.transaction("read", async (session) => {
    if (query.recurs !== "any") return planIn(await session.query(explained));
    // Loaded when there is a PostgreSQL, as its client is.
    const { explainKept } = await import("./kept-plan.ts");
    return planIn(await explainKept(session, query, how));
  });
}

function planIn([row]: readonly Row[]): QueryPlan {
  return readPlan(row?.[0]);
}

function isLate(error: unknown): boolean {
  return error instanceof DatabaseFault && (error.reason === "timeout" || isCancelled(error));
}
