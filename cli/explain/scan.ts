/** Finds in a query plan how entries are read: the scan that reads the most, and whether an index selects them. */
import type { PlanNode } from "./plan-node.ts";

export type Scan = {
  readonly node: PlanNode;
  readonly indexes: readonly string[];
  readonly sorted: boolean;
  /** Whether entries are tested in the index itself (testsInIndex). */
  readonly tests: boolean;
};

/** The scan that reads the most entries; among equals, one that no index serves. Null when none are read. */
export function largestScan(root: PlanNode): Scan | null {
  const rank = (scan: Scan) => rowsRead(scan.node) + (isServed(scan) ? 0 : 0.5);
  return scansOf(root, false).sort((a, b) => rank(b) - rank(a))[0] ?? null;
}

/** Tables that only tell which entries are requested. Reading them is ignored, because they have few rows. */
const DEFINITIONS = ["apps", "content_types", "fields", "slots", "entry_counts", "value_counts"];

/** Finds the steps that read entries. `sorted` says that all rows are sorted before a part of them is taken. */
function scansOf(node: PlanNode, sorted: boolean): Scan[] {
  const { table, nodes, step, loops } = node;
  const own = sorted && node.name === null;
  // A query may hold several ways to find its entries, and runs one.
  if (loops === 0) return [];
  if (table !== null && DEFINITIONS.includes(table)) return [];
  if (table !== null) return [{ node, indexes: indexesOf(node), sorted: own, tests: testsInIndex(node) }];
  const above = !TAKES_PART.includes(step) && (own || step === "Sort");
  return nodes.flatMap((below) => scansOf(below, above));
}

/** Steps that return fewer or other rows than they read: a Sort above one does not sort all the rows that are read. */
const TAKES_PART = ["Limit", "Aggregate", "WindowAgg"];

/** A bitmap scan names its indexes, one or several, in steps below it. */
function indexesOf({ index, nodes }: PlanNode): string[] {
  return [...new Set([...(index === null ? [] : [index]), ...nodes.flatMap(indexesOf)])];
}

/** Rows that the step reads, those included that it discards. */
export function rowsRead({ rows, discarded }: PlanNode): number {
  return (rows.actual ?? rows.estimated) + (discarded ?? 0);
}

/** An index that only selects the type's entries serves a query that neither filters nor sorts them afterwards. */
export function isServed(scan: Scan): boolean {
  if (scan.indexes.length === 0) return false;
  return narrows(scan.node) || (filterOf(scan.node) === null && !scan.sorted);
}

function narrows({ condition, nodes }: PlanNode): boolean {
  return (
    partsOf(condition).some((part) => !part.includes("content_type_id") || part.includes("term_keys")) ||
    nodes.some(narrows)
  );
}

/** The tests of a condition, without the texts in them, which may contain anything. */
function partsOf(condition: string | null): string[] {
  return condition === null ? [] : condition.replace(/'(?:[^']|'')*'/g, "''").split(" AND ");
}

/** The column by which an ordered index of precast.entries selects a range, by the name of the index. */
const RANGE_COLUMNS: Readonly<Record<string, string>> = {
  entries_by_publication: "published_at",
  entries_by_creation: "created_at",
  entries_by_edit: "updated_at",
};

/**
 * Whether the scan goes through a range of an index that holds all slots (schema/0010_indexes.sql), and tests there what
 * does not limit the range. PostgreSQL does not tell how many entries fail such a test.
 */
function testsInIndex({ index, condition, nodes }: PlanNode): boolean {
  const [, slot] = /^entries_by_([tn]\d)$/.exec(index ?? "") ?? [];
  const column = slot ?? RANGE_COLUMNS[index ?? ""];
  if (column === undefined) return nodes.some(testsInIndex);
  const parts = partsOf(condition).map((part) => /^\(*(\w+)\)* (\S+)/.exec(part) ?? []);
  const isOneValue = parts.some(([, name, sign]) => name === column && sign === "=");
  const limits = ["content_type_id", column, ...(isOneValue ? ["published_at"] : [])];
  return parts.some(([, name]) => name !== undefined && !limits.includes(name));
}

/** Null also for a filter on the status alone, which partial indexes have as their condition. */
function filterOf({ filter }: PlanNode): string | null {
  return filter === null || /^\(?(\w+\.)?status = '\w+'::text\)?$/.test(filter) ? null : filter;
}
