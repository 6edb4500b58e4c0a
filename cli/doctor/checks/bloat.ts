/** Finds indexes that have become much larger than a new one would be: after many edits, half-empty pages stay. */
import type { Database } from "../../../shared/database/database.ts";
import { sql } from "../../../shared/query.ts";
import { formatBytes } from "../../terminal/format.ts";
import { type CheckContext, defineCheck } from "../check.ts";
import { type Finding, statementRemedy } from "../finding.ts";

/** `bytes` is what the index takes, and `needed` about what a new one would. */
type Measured = Pick<Index, "name" | "bytes" | "hasOwnerRights"> & { readonly needed: number };

export const bloatCheck = defineCheck({
  name: "bloat",
  gather: measureIndexes,
  judge: (indexes: readonly Measured[]) => {
    const bloated = indexes.filter(({ bytes, needed }) => bytes > needed * MOST_TIMES);
    const waste = bloated.reduce((sum, { bytes, needed }) => sum + bytes - needed, 0);
    return waste < MIN_WASTE ? [] : bloated.map(findingOf);
  },
});

/** Of what a new index would take. One whose pages were split by entries in random order takes up to 1.7 times as much. */
const MOST_TIMES = 2;
/** Bytes that all bloated indexes waste together: fewer are no reason to rebuild any. */
const MIN_WASTE = 32_000_000;
/** Bytes. Reading all of a smaller index takes a few milliseconds. */
const SMALL = 8_000_000;

function findingOf({ name, bytes, needed, hasOwnerRights }: Measured): Finding {
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
      [String(SMALL)],
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
