/** Runs a query as the live server does, and reads its plan and times from the database. */
import type { Database } from "../../shared/database/database.ts";
import { DatabaseFault, isCancelled } from "../../shared/database/fault.ts";
import type { Query, Row } from "../../shared/query.ts";
import { type QueryPlan, readPlan } from "./plan-node.ts";

/**
 * Returns the plan with its times, or without them when the query exceeds the time limit of the database. It is the
 * plan that the live server uses: on PostgreSQL the generic plan if the server keeps one for the query, else the plan
 * for these values.
 */
export async function measureQuery(database: Database, query: Query): Promise<QueryPlan> {
  try {
    return await explainWith(database, query, "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)");
  } catch (error) {
    if (!isLate(error)) throw error;
    return explainWith(database, query, "EXPLAIN (FORMAT JSON)");
  }
}

async function explainWith(database: Database, query: Query, how: string): Promise<QueryPlan> {
  const explained = { text: `${how} ${query.text}`, values: query.values };
  // The embedded database ends slow queries only outside of transactions, where a setting would affect all queries.
  if (database.kind === "embedded") return planIn(await database.query(explained));
  return database.transaction("read", async (session) => {
    if (query.recurringPlan !== "generic") return planIn(await session.query(explained));
    // Imported on demand: it needs the client of PostgreSQL, which the embedded database does without.
    const { explainGeneric } = await import("./generic-plan.ts");
    return planIn(await explainGeneric(session, query, how));
  });
}

function planIn([row]: readonly Row[]): QueryPlan {
  return readPlan(row?.[0]);
}

function isLate(error: unknown): boolean {
  return error instanceof DatabaseFault && (error.reason === "timeout" || isCancelled(error));
}
