/** Says whether an index served a query or entries were read one by one, and what would help. */
import { type Condition, isNegated } from "../../shared/condition.ts";
import type { Plan } from "../../shared/plan.ts";
import { INDEXED_LENGTH } from "../../shared/sql/trigram.ts";
import { lengthOf } from "../../shared/value.ts";
import { formatCount, formatCounted } from "../terminal/format.ts";
import type { PlanNode, QueryPlan } from "./plan-node.ts";

export type IndexUse = {
  readonly by_index: boolean;
  /** Names of the indexes by which entries were found. */
  readonly indexes: readonly string[];
  /**
   * Number of entries that were read to find the requested ones; null when the query was not run, or when the index
   * itself was read for more entries than it found, which PostgreSQL does not count.
   */
  readonly read: number | null;
  readonly sentence: string;
};

/** `entries` is the number of published entries of the type; null when it is not known. */
export function indexUseOf({ root, ran }: QueryPlan, plan: Plan, entries: number | null): IndexUse {
  const scan = largestScan(scansOf(root, false));
  if (scan === null) return { by_index: true, indexes: [], read: 0, sentence: "The query reads no entries." };
  const read = ran ? rowsRead(scan.node) : null;
  const found = { indexes: scan.indexes, read: scan.tests ? null : read };
  if (isServed(scan) && !readsAll(plan, read, entries))
    return { ...found, by_index: true, sentence: servedSentence(scan, read, entries) };
  const sentence = `${readSentence(scan, read, entries)} ${helpOf(plan, scan, read ?? entries)}`;
  return { ...found, by_index: false, sentence };
}

type Scan = {
  readonly node: PlanNode;
  readonly indexes: readonly string[];
  readonly sorted: boolean;
  /** Whether entries are tested in the index itself (testsInIndex). */
  readonly tests: boolean;
};

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

/** The scan that reads the most rows; among equals, one that no index serves. */
function largestScan(scans: readonly Scan[]): Scan | null {
  const rank = (scan: Scan) => rowsRead(scan.node) + (isServed(scan) ? 0 : 0.5);
  return [...scans].sort((a, b) => rank(b) - rank(a))[0] ?? null;
}

function rowsRead({ rows, discarded }: PlanNode): number {
  return (rows.actual ?? rows.estimated) + (discarded ?? 0);
}

/** An index that only selects the type's entries serves a query that neither filters nor sorts them afterwards. */
function isServed(scan: Scan): boolean {
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
 * Whether the scan goes through a range of an index that holds all slots (schema/0008_slots.sql), and tests there what
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

/** For a part of too many words, the index of terms finds all entries of the type (schema/0018_terms.sql). */
function readsAll(plan: Plan, read: number | null, entries: number | null): boolean {
  if (plan.kind !== "search") return false;
  return read === null ? plan.words.every(isShort) : entries !== null && read >= Math.max(entries, 1);
}

/** Null also for a filter on the status alone, which partial indexes have as their condition. */
function filterOf({ filter }: PlanNode): string | null {
  return filter === null || /^\(?(\w+\.)?status = '\w+'::text\)?$/.test(filter) ? null : filter;
}

function servedSentence({ node, indexes, tests }: Scan, read: number | null, entries: number | null): string {
  const served = `Served by index ${indexes.join(" and ")}`;
  if (read === null) return `${served}.`;
  const of = entries === null || read > entries ? "" : ` of ${formatCount(entries)}`;
  if (tests)
    return `${served}: goes through a range of it, where ${formatCount(read)}${of} entries meet the other conditions too.`;
  const left = node.discarded ? `, and discards ${formatCount(node.discarded)} of them` : "";
  return `${served}: reads ${formatCount(read)}${of} entries${left}.`;
}

/** An index may give only the type's entries, or only their order, without selecting the requested ones. */
function readSentence({ indexes }: Scan, read: number | null, entries: number | null): string {
  const why = indexes.length === 0 ? "no index is used" : "no index selects the requested ones";
  if (read === null || entries === null) return `Reads every entry of the type: ${why}.`;
  if (read < entries) return `Reads ${formatCount(read)} of the type's ${formatCount(entries)} entries: ${why}.`;
  const others = read - entries;
  const more = others > 0 ? `, and ${formatCounted(others, "other row")}` : "";
  return `Reads all ${formatCount(entries)} entries of the type${more}: ${why}.`;
}

/** Reading this many entries takes a few milliseconds, and an index would hardly be faster. */
const FEW = 2_000;

function helpOf(plan: Plan, { sorted }: Scan, read: number | null): string {
  if (read !== null && read <= FEW) return "With so few entries, no index is needed.";
  const conditions = "conditions" in plan ? plan.conditions : [];
  if (plan.kind === "search" && plan.words.every(isShort))
    return `A word of ${INDEXED_LENGTH} letters or more would help.`;
  if (conditions.some(isNegated))
    return "Most entries match neq and nin: name the wanted values with eq or in instead.";
  if (conditions.some(isShortMatch)) return `A text of ${INDEXED_LENGTH} letters or more would help.`;
  const order =
    sorted && conditions.length === 0
      ? "Sorting in the default order"
      : "One more filter, on a value that few entries have,";
  return `${order} would help. Run \`precast doctor\` to see whether the database lacks something.`;
}

function isShort(word: string): boolean {
  return lengthOf(word) < INDEXED_LENGTH;
}

function isShortMatch(condition: Condition): boolean {
  return condition.kind === "match" && isShort(condition.text);
}
