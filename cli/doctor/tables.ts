/** Checks tables for what VACUUM, ANALYZE and REINDEX mend. */
import type { Database } from "../../shared/database/database.ts";
import { sql } from "../../shared/sql/query.ts";
import { formatBytes, formatCount } from "../../shared/text.ts";
import { readRow, readRows } from "../database.ts";
import { type CheckContext, defineCheck, type Finding, type Found, statementRemedy } from "./check.ts";

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

function findBloat({ name, bytes, needed, hasOwnerRights }: Measured): Found {
  return {
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
function readLargeIndexes(database: Database): Promise<IndexedTable[]> {
  return readRows(
    database,
    `SELECT format('%I.%I', 'precast', of.relname) AS name, of.reltuples::bigint AS rows, json_agg(json_build_object(
    'name', format('%I.%I', 'precast', class.relname), 'bytes', pg_relation_size(class.oid),
    'rows', class.reltuples::bigint,
    'columns', (SELECT json_agg(quote_ident(attname) ORDER BY attnum) FROM pg_attribute WHERE attrelid = class.oid),
    'condition', coalesce(pg_get_expr(index.indpred, of.oid), 'true'),
    'hasOwnerRights', pg_has_role(class.relowner, 'USAGE')) ORDER BY class.relname) AS indexes
FROM pg_index AS index JOIN pg_class AS class ON class.oid = index.indexrelid
JOIN pg_am AS method ON method.oid = class.relam AND method.amname = 'btree'
JOIN pg_class AS of ON of.oid = index.indrelid
WHERE of.relnamespace = 'precast'::regnamespace AND index.indisvalid AND index.indexprs IS NULL
  AND pg_relation_size(class.oid) >= $1::bigint AND class.reltuples >= 0 AND of.reltuples > 0
  AND has_table_privilege(of.oid, 'SELECT')
GROUP BY of.oid, of.relname, of.reltuples ORDER BY min(class.relname)`,
    [String(SMALL_INDEX)],
  );
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

// Reads what the database knows about the tables of Precast: sizes, statistics, and the rights of the current role.

type Table = {
  /** As SQL names it: `precast.entries`. */
  readonly name: string;
  /** Estimates of the database: live rows, dead rows, and rows written since the last ANALYZE. */
  readonly rows: number;
  readonly dead: number;
  readonly modified: number;
  /** Pages now, pages at the last VACUUM or ANALYZE, and those of the latter that were marked as all-visible. */
  readonly pages: number;
  readonly knownPages: number;
  readonly visiblePages: number;
  readonly hasStatistics: boolean;
  /** Whether the role may read the table. Otherwise its statistics are hidden too, and `hasStatistics` is false. */
  readonly readable: boolean;
  /** Whether the role has the owner's rights, so that it may run ANALYZE and VACUUM. */
  readonly hasOwnerRights: boolean;
};

function readTables({ database }: Pick<CheckContext, "database">): Promise<Table[]> {
  return readRows(
    database,
    `SELECT format('%I.%I', namespace.nspname, class.relname) AS name,
  greatest(stat.n_live_tup, class.reltuples::bigint, 0) AS rows, coalesce(stat.n_dead_tup, 0) AS dead,
  coalesce(stat.n_mod_since_analyze, 0) AS modified,
  pg_relation_size(class.oid) / current_setting('block_size')::bigint AS pages, class.relpages AS "knownPages",
  class.relallvisible AS "visiblePages",
  EXISTS (SELECT FROM pg_stats WHERE schemaname = namespace.nspname AND tablename = class.relname) AS "hasStatistics",
  has_table_privilege(class.oid, 'SELECT') AS readable, pg_has_role(class.relowner, 'USAGE') AS "hasOwnerRights"
FROM pg_class AS class JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace
LEFT JOIN pg_stat_user_tables AS stat ON stat.relid = class.oid
WHERE namespace.nspname = 'precast' AND class.relkind = 'r' ORDER BY class.relname`,
  );
}

/** The remedy and the fix of a finding whose `statement` only the owner of the table may run. */
function maintenanceRemedy({ hasOwnerRights }: Table, statement: string): Pick<Finding, "remedy" | "fix"> {
  return statementRemedy(hasOwnerRights, "the owner of the table", [statement], "It does not block writers.");
}

// Finds tables that need VACUUM: many rows are dead, or many pages are not all-visible for index-only scans.

export const deadRowsCheck = defineCheck({
  name: "dead-rows",
  gather: readTables,
  judge: (tables) => tables.map(findDeadRows),
});

const DEAD_SHARE = 0.2;
const DEAD_ROWS = 1_000;
const HIDDEN_SHARE = 0.5;
/** Pages. Reading past the dead rows of a smaller table, or visiting its pages in an index-only scan, costs little. */
const FEW_DEAD_ROWS = 100;
const SMALL_HIDDEN = 1_000;

function findDeadRows(table: Table): Found | null {
  const found = deadRows(table) ?? hiddenPages(table);
  // TRUNCATE false: to return space to the disk, VACUUM would lock writers out for a moment.
  return found === null
    ? null
    : {
        subject: table.name,
        ...found,
        ...maintenanceRemedy(table, `VACUUM (TRUNCATE false) ${table.name}`),
      };
}

type Problem = Pick<Found, "problem" | "gain">;

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
  judge: (tables) => tables.map(findStatistics),
});

/**
 * Leaves out empty tables, for which ANALYZE makes no statistics however many pages deleted rows have left, and tables
 * that the role may not read, because their statistics are hidden from it.
 */
async function readAnalyzable({ database }: CheckContext): Promise<Table[]> {
  const found: Table[] = [];
  for (const table of (await readTables({ database })).filter(needsStatistics)) {
    if (table.hasStatistics || (table.readable && !(await isEmpty(database, table)))) found.push(table);
  }
  return found;
}

async function isEmpty(database: Database, { name }: Table): Promise<boolean> {
  const { empty } = await readRow<{ empty: boolean }>(database, `SELECT NOT EXISTS (SELECT FROM ${name}) AS empty`);
  return empty;
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

function findStatistics(table: Table): Found | null {
  const problem = findProblem(table);
  if (problem === null) return null;
  return {
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
