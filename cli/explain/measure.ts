/** Has the database run a query as the live server does, and tell how. */
import type { Database, Query } from "../../shared/database/database.ts";
import { DatabaseFault } from "../../shared/database/fault.ts";
import { type QueryPlan, readPlan } from "./plan-node.ts";

/**
 * The plan with its times; without them where the query takes longer than the database was opened for. Values go beside
 * the text as they do live, so it is the plan for these values.
 */
export async function measureQuery(database: Database, query: Query): Promise<QueryPlan> {
  try {
    return await explain(database, query, "ANALYZE, BUFFERS, FORMAT JSON");
  } catch (error) {
    if (!isLate(error)) throw error;
    return explain(database, query, "FORMAT JSON");
  }
}

async function explain(database: Database, { text, values }: Query, options: string): Promise<QueryPlan> {
  const [row] = await readOnly(database, { text: `EXPLAIN (${options}) ${text}`, values });
  return readPlan(row?.[0]);
}

/** The embedded database ends a query that takes too long outside of transactions alone. */
function readOnly(database: Database, query: Query): ReturnType<Database["query"]> {
  return database.kind === "embedded"
    ? database.query(query)
    : database.transaction("read", (session) => session.query(query));
}

const CANCELLED = "57014";

function isLate(error: unknown): boolean {
  return error instanceof DatabaseFault && (error.reason === "timeout" || error.code === CANCELLED);
}
