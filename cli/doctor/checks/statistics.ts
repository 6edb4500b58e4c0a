/** Finds tables without statistics, or with outdated ones: the plans of the database are guesses then. */
import { sql } from "../../../shared/query.ts";
import { formatCount } from "../../terminal/format.ts";
import { type CheckContext, defineCheck } from "../check.ts";
import type { Finding } from "../finding.ts";
import { maintenanceRemedy, readTables, type Table } from "../tables.ts";

export const statisticsCheck = defineCheck({
  name: "statistics",
  gather: readAnalyzable,
  judge: (tables) => tables.flatMap((table) => findingOf(table) ?? []),
});

/**
 * Leaves out empty tables, for which ANALYZE makes no statistics however many pages deleted rows have left, and tables
 * that the role may not read, because their statistics are hidden from it.
 */
async function readAnalyzable(context: CheckContext): Promise<Table[]> {
  const found: Table[] = [];
  for (const table of (await readTables(context)).filter(needsStatistics)) {
    if (table.hasStatistics || (table.readable && !(await isEmpty(context, table)))) found.push(table);
  }
  return found;
}

async function isEmpty({ database }: CheckContext, { name }: Table): Promise<boolean> {
  const [row] = await database.query(sql(`SELECT (NOT EXISTS (SELECT FROM ${name}))::text`));
  return row?.[0] === "true";
}

/** The tables of the ledger are queried by key only, so their plans do not depend on statistics. */
function needsStatistics({ name }: Table): boolean {
  return name !== "precast.usage" && name !== "precast.usage_batches";
}

/** Pages. Reading a smaller table takes almost no time, whatever the plan is. */
const SMALL = 50;
/** Share of rows written since the last ANALYZE. Autovacuum analyzes a table at half of it, unless it falls behind. */
const STALE_SHARE = 0.2;
const STALE_ROWS = 1_000;

function findingOf(table: Table): Finding | null {
  const problem = problemOf(table);
  if (problem === null) return null;
  return {
    kind: "advice",
    subject: `${table.name}: statistics`,
    problem,
    gain: "Live queries use the existing indexes. Without current statistics, a plan may read every entry instead.",
    ...maintenanceRemedy(table, `ANALYZE ${table.name}`),
  };
}

function problemOf({ rows, modified, pages, knownPages, hasStatistics }: Table): string | null {
  if (pages < SMALL) return null;
  if (!hasStatistics) return "The database has no statistics for it: it was never analysed.";
  if (modified > rows * STALE_SHARE + STALE_ROWS) {
    return `${formatCount(modified)} rows were written since it was last analysed, and it has about ${formatCount(rows)} rows.`;
  }
  // The embedded database does not count written rows.
  if (pages > knownPages * (1 + STALE_SHARE) + SMALL) {
    return `It has grown from ${formatCount(knownPages)} pages to ${formatCount(pages)} since it was last analysed.`;
  }
  return null;
}
