/**
 * Finds filterable fields in which nearly every entry has a different value: each value becomes a file of the tree that
 * lists one entry.
 */
import { type Column, findColumn } from "../../../shared/catalog.ts";
import { sql } from "../../../shared/query.ts";
import { keySql } from "../../../shared/sql/facet-query.ts";
import { IS_PUBLISHED, PUBLISHED_TYPE } from "../../../shared/sql/tree-query.ts";
import { countUnfilteredFiles } from "../../build/answers/totals.ts";
import { formatCount } from "../../terminal/format.ts";
import { type CheckContext, defineCheck, type TypeSize } from "../check.ts";
import { estimateDistinct } from "../distinct.ts";
import { CHANGE_WRITES, type Finding } from "../finding.ts";

export const filtersCheck = defineCheck({
  name: "filters",
  gather: readFilters,
  judge: (types) => types.flatMap(findingsOf),
});

type Filter = {
  readonly column: Column;
  /** Number of values (each has a file), and of entries with a value. Estimated unless the whole type was read. */
  readonly values: number;
  readonly entries: number;
};
type TypeFilters = TypeSize & { readonly filters: readonly Filter[]; readonly exact: boolean };

/** Entries. The numbers of a larger type are estimated from a sample of about this size. */
const SAMPLE = 50_000;

async function readFilters(context: CheckContext): Promise<TypeFilters[]> {
  const found: TypeFilters[] = [];
  const all = context.types.reduce((sum, { entries }) => sum + entries, 0);
  for (const size of context.types) {
    const share = sampleShare(size.entries, all);
    const filters: Filter[] = [];
    for (const name of size.entries < FEW ? [] : size.type.filterable_fields) {
      const column = findColumn(size.type, name);
      if (column !== undefined) filters.push(await readFilter(context, size, column, share));
    }
    found.push({ ...size, filters, exact: share === 1 });
  }
  return found;
}

/**
 * The share of a type's entries to read. A sample is taken of the table, which holds the entries of all types: `all`.
 * It is only worth reading when it is smaller than the type.
 */
export function sampleShare(entries: number, all: number): number {
  const share = SAMPLE / entries;
  return share * all < entries ? share : 1;
}

async function readFilter(
  { database }: CheckContext,
  { app, type }: TypeSize,
  column: Column,
  share: number,
): Promise<Filter> {
  const [row] = await database.query(sql(facetSql(column, share), [app.key, type.slug]));
  const [values = 0, valuesSeenOnce = 0, occurrences = 0, entriesWithValue = 0] = (row ?? []).map(Number);
  return {
    column,
    values: estimateDistinct({ values, valuesSeenOnce, occurrences }, occurrences / share),
    entries: Math.round(entriesWithValue / share),
  };
}

/** Returns one row: distinct values, those that occur once, occurrences of all values, and entries with a value. */
function facetSql(column: Column, share: number): string {
  const { key, elements } = keySql(column);
  const part = share < 1 ? ` TABLESAMPLE SYSTEM (${(share * 100).toFixed(6)})` : "";
  return `WITH ${PUBLISHED_TYPE},
held AS MATERIALIZED (
  SELECT ${key} AS value, e.id FROM precast.entries AS e${part} ${elements} WHERE ${IS_PUBLISHED} AND (${key})::text <> ''),
facet AS (SELECT count(*) AS times FROM held GROUP BY value)
SELECT count(*)::text, count(*) FILTER (WHERE times = 1)::text, coalesce(sum(times), 0)::text,
  (SELECT count(DISTINCT id) FROM held)::text
FROM facet`;
}

/** Distinct values as a share of the entries with a value. */
const NEARLY_UNIQUE = 0.9;
/** Fewer values, and so fewer files, are not worth a finding. */
const FEW = 1_000;
/** From this number of values on the finding is advice: below, a lookup by slug, for example, is worth its files. */
const MANY = 10_000;

function findingsOf(size: TypeFilters): Finding[] {
  const files = filesOf(size);
  const nearlyUnique = size.filters.filter(({ values, entries }) => values >= FEW && values >= entries * NEARLY_UNIQUE);
  return nearlyUnique.map((filter) => findingOf(size, filter, files));
}

/** Number of files of the type in the tree, including its schema. */
function filesOf({ type, entries, filters }: TypeFilters): number {
  return 1 + countUnfilteredFiles(type, entries) + filters.reduce((sum, { values }) => sum + values, 0);
}

function findingOf({ app, type, exact }: TypeFilters, { column, values, entries }: Filter, files: number): Finding {
  const count = `${exact ? "" : "about "}${formatCount(values)}`;
  const share = `${((values / files) * 100).toFixed(0)} %`;
  return {
    kind: values >= MANY ? "advice" : "information",
    subject: `${app.key}/${type.slug}: filter on ${column.name}`,
    problem: `The field has ${count} values in ${formatCount(entries)} entries, and each value is a file in the tree: ${share} of the type's files.`,
    gain: `A full build writes ${count} fewer files, and a build after an edit of the field two fewer.`,
    remedy: `If no client filters by ${column.name}, remove it from filterable_fields: requests that filter by it are then refused. ${CHANGE_WRITES} If clients do filter by it, keep it: the filter justifies its files.`,
    fix: null,
  };
}
