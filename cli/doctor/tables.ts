/** Checks tables for what VACUUM, ANALYZE and REINDEX mend, and for space that nothing needs. */
import type { Database } from "../../shared/database/database.ts";
import { sql } from "../../shared/sql/query.ts";
import { formatBytes, formatCount } from "../../shared/text.ts";
import {
  type CheckContext,
  defineCheck,
  type Finding,
  maintenanceRemedy,
  readTables,
  statementRemedy,
  type Table,
} from "./check.ts";

// Finds indexes that have become much larger than a new one would be: after many edits, half-empty pages stay.

/** `bytes` is what the index takes, and `needed` about what a new one would. */
type Measured = Pick<Index, "name" | "bytes" | "hasOwnerRights"> & { readonly needed: number };

export const bloatCheck = defineCheck({
  name: "bloat",
  gather: measureIndexes,
  judge: (indexes: readonly Measured[]) => {
    const bloated = indexes.filter(({ bytes, needed }) => bytes > needed * MOST_TIMES);
    const waste = bloated.reduce((sum, { bytes, needed }) => sum + bytes - needed, 0);
    return waste < MIN_WASTE ? [] : bloated.map(findBloat);
  },
});

/** Of what a new index would take. One whose pages were split by entries in random order takes up to 1.7 times as much. */
const MOST_TIMES = 2;
/** Bytes that all bloated indexes waste together: fewer are no reason to rebuild any. */
const MIN_WASTE = 32_000_000;
/** Bytes. Reading all of a smaller index takes a few milliseconds. */
const SMALL_INDEX = 8_000_000;

function findBloat({ name, bytes, needed, hasOwnerRights }: Measured): Finding {
  return {
    kind: "advice",
    subject: `${name}: bloat`,
    problem: `It takes ${formatBytes(bytes)}, and a new one would take about ${formatBytes(needed)}: most of its pages are nearly empty, and are read all the same.`,
    gain: "Requests that read much of it take a part of the time, and more of it stays in memory.",
    ...statementRemedy(
      hasOwnerRights,
      "its owner",
      [`REINDEX INDEX CONCURRENTLY ${name}`],
      "It waits for open transactions, and does not block writers. Until it is done, both take disk space.",
    ),
  };
}

type Index = {
  readonly name: string;
  readonly bytes: number;
  readonly rows: number;
  readonly columns: readonly string[];
  /** SQL of the condition of a partial index. */
  readonly condition: string;
  readonly hasOwnerRights: boolean;
};
type IndexedTable = { readonly name: string; readonly rows: number; readonly indexes: readonly Index[] };

async function measureIndexes({ database }: CheckContext): Promise<Measured[]> {
  const found: Measured[] = [];
  for (const table of await readLargeIndexes(database)) found.push(...(await measureTable(database, table)));
  return found;
}

/** The tables with B-tree indexes that are large enough to matter and hold columns alone, and that the role may read. */
async function readLargeIndexes(database: Database): Promise<IndexedTable[]> {
  const rows = await database.query(
    sql(
      `SELECT format('%I.%I', 'precast', of.relname), of.reltuples::bigint::text, format('%I.%I', 'precast', class.relname),
  pg_relation_size(class.oid)::text, class.reltuples::bigint::text,
  (SELECT json_agg(quote_ident(attname) ORDER BY attnum) FROM pg_attribute WHERE attrelid = class.oid)::text,
  coalesce(pg_get_expr(index.indpred, of.oid), 'true'), pg_has_role(class.relowner, 'USAGE')::text
FROM pg_index AS index JOIN pg_class AS class ON class.oid = index.indexrelid
JOIN pg_am AS method ON method.oid = class.relam AND method.amname = 'btree'
JOIN pg_class AS of ON of.oid = index.indrelid
WHERE of.relnamespace = 'precast'::regnamespace AND index.indisvalid AND index.indexprs IS NULL
  AND pg_relation_size(class.oid) >= $1::bigint AND class.reltuples >= 0 AND of.reltuples > 0
  AND has_table_privilege(of.oid, 'SELECT')
ORDER BY class.relname`,
      [String(SMALL_INDEX)],
    ),
  );
  const tables = new Map<string, { name: string; rows: number; indexes: Index[] }>();
  for (const [table, all, name, bytes, count, columns, condition, hasRights] of rows as string[][]) {
    const of = tables.get(table as string) ?? { name: table as string, rows: Number(all), indexes: [] };
    tables.set(of.name, of);
    of.indexes.push({
      name: name as string,
      bytes: Number(bytes),
      rows: Number(count),
      columns: JSON.parse(columns as string) as string[],
      condition: condition as string,
      hasOwnerRights: hasRights === "true",
    });
  }
  return [...tables.values()];
}

const SAMPLE_ROWS = 20_000;
/** Bytes: the header of a row of an index, its map of nulls, its line pointer, and what aligns it. */
const ROW_OVERHEAD = 24;
/** How full a new index leaves its pages. */
const FILL = 0.9;

/** Measures the columns of some rows, the same ones each time. Compressed texts are as long in the index as here. */
async function measureTable(database: Database, { name, rows, indexes }: IndexedTable): Promise<Measured[]> {
  const percent = Math.min(100, (SAMPLE_ROWS / rows) * 100).toFixed(6);
  const widths = indexes.map(({ columns, condition }) => {
    const width = columns.map((column) => `coalesce(pg_column_size(${column}), 0)`).join(" + ");
    return `(avg(${width}) FILTER (WHERE ${condition}))::text`;
  });
  const [row] = await database.query(
    sql(`SELECT ${widths.join(",\n  ")} FROM ${name} TABLESAMPLE SYSTEM (${percent}) REPEATABLE (1)`),
  );
  return indexes.flatMap((index, place) => {
    const width = row?.[place];
    if (width == null) return [];
    return [{ ...index, needed: (index.rows * (Number(width) + ROW_OVERHEAD)) / FILL }];
  });
}

// Finds tables that need VACUUM: many rows are dead, or many pages are not all-visible for index-only scans.

export const deadRowsCheck = defineCheck({
  name: "dead-rows",
  gather: readTables,
  judge: (tables) => tables.flatMap((table) => findDeadRows(table) ?? []),
});

const DEAD_SHARE = 0.2;
const DEAD_ROWS = 1_000;
const HIDDEN_SHARE = 0.5;
/** Pages. Reading past the dead rows of a smaller table, or visiting its pages in an index-only scan, costs little. */
const FEW_DEAD_ROWS = 100;
const SMALL_HIDDEN = 1_000;

function findDeadRows(table: Table): Finding | null {
  const found = deadRows(table) ?? hiddenPages(table);
  // TRUNCATE false: to return space to the disk, VACUUM would lock writers out for a moment.
  return found === null
    ? null
    : {
        kind: "advice",
        subject: table.name,
        ...found,
        ...maintenanceRemedy(table, `VACUUM (TRUNCATE false) ${table.name}`),
      };
}

type Problem = Pick<Finding, "problem" | "gain">;

function deadRows({ rows, dead, pages }: Table): Problem | null {
  if (pages < FEW_DEAD_ROWS) return null;
  if (dead <= DEAD_ROWS || dead <= (rows + dead) * DEAD_SHARE) return null;
  const share = percent(dead / (rows + dead));
  return {
    problem: `${formatCount(dead)} of its ${formatCount(rows + dead)} rows are dead (${share}), and scans still read them.`,
    gain: `Scans read up to ${share} less, and new rows reuse the space of the dead ones.`,
  };
}

function hiddenPages({ pages, visiblePages }: Table): Problem | null {
  if (pages < SMALL_HIDDEN || visiblePages >= pages * (1 - HIDDEN_SHARE)) return null;
  return {
    problem: `${formatCount(pages - visiblePages)} of its ${formatCount(pages)} pages are not marked as all-visible, so index-only scans have to read them.`,
    gain: "Totals are counted in an index alone, without reading the table, which is often ten times as fast.",
  };
}

function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`;
}

// Finds tables without statistics, or with outdated ones: the plans of the database are guesses then.

export const statisticsCheck = defineCheck({
  name: "statistics",
  gather: readAnalyzable,
  judge: (tables) => tables.flatMap((table) => findStatistics(table) ?? []),
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
const SMALL_TABLE = 50;
/** Share of rows written since the last ANALYZE. Autovacuum analyzes a table at half of it, unless it falls behind. */
const STALE_SHARE = 0.2;
const STALE_ROWS = 1_000;

function findStatistics(table: Table): Finding | null {
  const problem = findProblem(table);
  if (problem === null) return null;
  return {
    kind: "advice",
    subject: `${table.name}: statistics`,
    problem,
    gain: "Live queries use the existing indexes. Without current statistics, a plan may read every entry instead.",
    ...maintenanceRemedy(table, `ANALYZE ${table.name}`),
  };
}

function findProblem({ rows, modified, pages, knownPages, hasStatistics }: Table): string | null {
  if (pages < SMALL_TABLE) return null;
  if (!hasStatistics) return "The database has no statistics for it: it was never analysed.";
  if (modified > rows * STALE_SHARE + STALE_ROWS) {
    return `${formatCount(modified)} rows were written since it was last analysed, and it has about ${formatCount(rows)} rows.`;
  }
  // The embedded database does not count written rows.
  if (pages > knownPages * (1 + STALE_SHARE) + SMALL_TABLE) {
    return `It has grown from ${formatCount(knownPages)} pages to ${formatCount(pages)} since it was last analysed.`;
  }
  return null;
}

// Reports a large table precast.removals, which records removed entries for trees built before the removal.

type Facts = { readonly removals: number; readonly entries: number; readonly bytes: number };

export const removalsCheck = defineCheck<Facts>({
  name: "removals",
  gather: countRemovals,
  judge: ({ removals, entries, bytes }) =>
    removals < MANY || removals < entries
      ? []
      : [
          {
            kind: "information",
            subject: "precast.removals",
            problem: `It records about ${formatCount(removals)} removed entries, which is more than there are entries (${formatBytes(bytes)} with its indexes).`,
            gain: "Only disk space: builds find new records by index.",
            remedy: "Keep the records. A tree that was built before a removal still needs its record.",
            fix: null,
          },
        ],
});

const MANY = 100_000;

/** The numbers of rows are estimates of the database. */
async function countRemovals({ database }: CheckContext): Promise<Facts> {
  const [row] = await database.query(
    sql(`SELECT (SELECT reltuples::bigint FROM pg_class WHERE oid = 'precast.removals'::regclass)::text,
  (SELECT reltuples::bigint FROM pg_class WHERE oid = 'precast.entries'::regclass)::text,
  pg_total_relation_size('precast.removals')::text`),
  );
  const [removals, entries, bytes] = (row ?? []).map(Number);
  return { removals: removals ?? 0, entries: entries ?? 0, bytes: bytes ?? 0 };
}
