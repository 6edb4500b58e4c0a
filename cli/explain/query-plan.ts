/** Reads the JSON output of EXPLAIN as plain data: a tree of plan steps. */
import type { output } from "zod";
import * as z from "zod";
import { type Condition, isNegated } from "../../shared/api/filter.ts";
import type { Plan } from "../../shared/api/plan.ts";
import { countCharacters } from "../../shared/api/value.ts";
import { isTextual } from "../../shared/sql/columns.ts";
import { INDEXED_LENGTH } from "../../shared/sql/conditions.ts";
import { wordsLookedUp } from "../../shared/sql/search.ts";
import { formatCount, formatCounted } from "../../shared/text.ts";

export type PlanNode = {
  /** Type of the step as PostgreSQL names it: `Index Only Scan`. */
  readonly step: string;
  /** Name of the CTE that the step computes or reads, such as `matched`; null when there is none. */
  readonly name: string | null;
  readonly table: string | null;
  readonly index: string | null;
  /** Condition that is looked up in the index. */
  readonly condition: string | null;
  /** Condition that is checked for each row that was read. */
  readonly filter: string | null;
  /** Rows that the step returns, over all its runs. `actual` is null when the query was not run. */
  readonly rows: { readonly estimated: number; readonly actual: number | null };
  /** Rows that were read and then discarded, over all runs; null when the query was not run. */
  readonly discarded: number | null;
  /** Number of times that the step ran; null when the query was not run. */
  readonly loops: number | null;
  /** Elapsed time including all steps below. Parallel processes share the runs of a step at the same time. */
  readonly milliseconds: number | null;
  readonly nodes: readonly PlanNode[];
};

export type QueryPlan = {
  /** Whether the query ran to its end. */
  readonly ran: boolean;
  readonly planning_ms: number | null;
  readonly execution_ms: number | null;
  /** Database pages that were read: from the database's buffers (`memory`), and from outside of them (`disk`). */
  readonly pages: { readonly memory: number; readonly disk: number } | null;
  readonly root: PlanNode;
};

type ExplainNode = output<typeof NODE>;

const text = z.string().optional();
const number = z.number().optional();
const NODE = z.object({
  "Node Type": z.string(),
  "Subplan Name": text,
  "CTE Name": text,
  "Relation Name": text,
  "Index Name": text,
  "Index Cond": text,
  Filter: text,
  "Plan Rows": z.number(),
  "Actual Rows": number,
  "Actual Loops": number,
  "Actual Total Time": number,
  "Workers Launched": number,
  "Rows Removed by Filter": number,
  "Rows Removed by Index Recheck": number,
  "Shared Hit Blocks": number,
  "Shared Read Blocks": number,
  get Plans() {
    return z.array(NODE).optional();
  },
});
const PLAN = z.tuple([z.object({ Plan: NODE, "Planning Time": number, "Execution Time": number })]);

/** `output` is that of `EXPLAIN (FORMAT JSON)`: text from PostgreSQL, already parsed from the embedded database. */
export function readPlan(output: unknown): QueryPlan {
  const [{ Plan: root, ...times }] = PLAN.parse(typeof output === "string" ? JSON.parse(output) : output);
  const memory = root["Shared Hit Blocks"];
  return {
    ran: times["Execution Time"] !== undefined,
    planning_ms: times["Planning Time"] ?? null,
    execution_ms: times["Execution Time"] ?? null,
    pages: memory === undefined ? null : { memory, disk: root["Shared Read Blocks"] ?? 0 },
    root: readNode(root),
  };
}

/** `processes` is how many processes may run the step at the same time, as launched by a Gather above it. */
function readNode(node: ExplainNode, processes = 1): PlanNode {
  const { "Actual Loops": loops, "Actual Rows": rows, "Actual Total Time": time, "Workers Launched": workers } = node;
  const discarded = (node["Rows Removed by Filter"] ?? 0) + (node["Rows Removed by Index Recheck"] ?? 0);
  // EXPLAIN reports the mean over all runs.
  const inAll = (mean: number | undefined) =>
    loops === undefined || mean === undefined ? null : Math.round(mean * loops);
  return {
    step: node["Node Type"],
    name: findTable(node),
    table: node["Relation Name"] ?? null,
    index: node["Index Name"] ?? null,
    condition: node["Index Cond"] ?? null,
    filter: node.Filter ?? null,
    rows: { estimated: node["Plan Rows"] * Math.max(loops ?? 1, 1), actual: inAll(rows) },
    discarded: inAll(discarded),
    loops: loops ?? null,
    milliseconds: loops === undefined || time === undefined ? null : sumTime(time, loops, processes),
    nodes: (node.Plans ?? []).map((below) => readNode(below, workers === undefined ? processes : workers + 1)),
  };
}

/** Elapsed milliseconds, if the processes share the runs evenly. */
function sumTime(mean: number, loops: number, processes: number): number {
  const runs = loops / Math.max(1, Math.min(loops, processes));
  return Math.round(mean * runs * 1_000) / 1_000;
}

function findTable(node: ExplainNode): string | null {
  const [, name] = /^CTE (.+)$/.exec(node["Subplan Name"] ?? "") ?? [];
  return name ?? node["CTE Name"] ?? null;
}

// Finds in a query plan how entries are read: the scan that reads the most, and whether an index selects them.

type Scan = {
  readonly node: PlanNode;
  readonly indexes: readonly string[];
  readonly sorted: boolean;
  /** Whether entries are tested in the index itself (testsInIndex). */
  readonly tests: boolean;
};

/** The scan that reads the most entries; among equals, one that no index serves. Null when none are read. */
function largestScan(root: PlanNode): Scan | null {
  const rank = (scan: Scan) => rowsRead(scan.node) + (isServed(scan) ? 0 : 0.5);
  return findScans(root, false).sort((a, b) => rank(b) - rank(a))[0] ?? null;
}

/** Tables that only tell which entries are requested. Reading them is ignored, because they have few rows. */
const DEFINITIONS = ["apps", "content_types", "fields", "slots", "entry_counts", "value_counts"];

/** Finds the steps that read entries. `sorted` says that all rows are sorted before a part of them is taken. */
function findScans(node: PlanNode, sorted: boolean): Scan[] {
  const { table, nodes, step, loops } = node;
  const own = sorted && node.name === null;
  // A query may hold several ways to find its entries, and runs one.
  if (loops === 0) return [];
  if (table !== null && DEFINITIONS.includes(table)) return [];
  if (table !== null) return [{ node, indexes: findIndexes(node), sorted: own, tests: testsInIndex(node) }];
  const above = !TAKES_PART.includes(step) && (own || step === "Sort");
  return nodes.flatMap((below) => findScans(below, above));
}

/** Steps that return fewer or other rows than they read: a Sort above one does not sort all the rows that are read. */
const TAKES_PART = ["Limit", "Aggregate", "WindowAgg"];

/** A bitmap scan names its indexes, one or several, in steps below it. */
function findIndexes({ index, nodes }: PlanNode): string[] {
  return [...new Set([...(index === null ? [] : [index]), ...nodes.flatMap(findIndexes)])];
}

/** Rows that the step reads, those included that it discards. */
function rowsRead({ rows, discarded }: PlanNode): number {
  return (rows.actual ?? rows.estimated) + (discarded ?? 0);
}

/** An index that only selects the type's entries serves a query that neither filters nor sorts them afterwards. */
function isServed(scan: Scan): boolean {
  if (scan.indexes.length === 0) return false;
  return narrows(scan.node) || (findFilter(scan.node) === null && !scan.sorted);
}

function narrows({ condition, nodes }: PlanNode): boolean {
  return (
    splitCondition(condition).some((part) => !part.includes("content_type_id") || part.includes("term_keys")) ||
    nodes.some(narrows)
  );
}

/** The tests of a condition, without the texts in them, which may contain anything. */
function splitCondition(condition: string | null): string[] {
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
  const parts = splitCondition(condition).map((part) => /^\(*(\w+)\)* (\S+)/.exec(part) ?? []);
  const isOneValue = parts.some(([, name, sign]) => name === column && sign === "=");
  const limits = ["content_type_id", column, ...(isOneValue ? ["published_at"] : [])];
  return parts.some(([, name]) => name !== undefined && !limits.includes(name));
}

/** Null also for a filter on the status alone, which partial indexes have as their condition. */
function findFilter({ filter }: PlanNode): string | null {
  return filter === null || /^\(?(\w+\.)?status = '\w+'::text\)?$/.test(filter) ? null : filter;
}

// Says whether an index served a query or entries were read one by one, and what would help.

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
export function describeIndexUse({ root, ran }: QueryPlan, plan: Plan, entries: number | null): IndexUse {
  const scan = largestScan(root);
  if (scan === null) return { by_index: true, indexes: [], read: 0, sentence: "The query reads no entries." };
  const read = ran ? rowsRead(scan.node) : null;
  const found = { indexes: scan.indexes, read: scan.tests ? null : read };
  if (isServed(scan) && !readsAll(plan, read, entries))
    return { ...found, by_index: true, sentence: `${servedSentence(scan, read, entries)}${termsSentence(plan)}` };
  const sentence = `${readSentence(scan, read, entries)} ${adviseOn(plan, scan, read ?? entries)}`;
  return { ...found, by_index: false, sentence };
}

/** For a part of too many words, the index of terms finds all entries of the type (schema/0006_words.sql). */
function readsAll(plan: Plan, read: number | null, entries: number | null): boolean {
  if (plan.kind !== "search") return false;
  return read === null ? plan.words.every(isShort) : entries !== null && read >= Math.max(entries, 1);
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

/** The plan does not show how the words of a search are looked up (precast.keys_with in schema/0006_words.sql). */
function termsSentence(plan: Plan): string {
  if (plan.kind !== "search" || !wordsLookedUp(plan).some(isShort)) return "";
  return ` Before that, it reads all different words of the type to look for those of fewer than ${INDEXED_LENGTH} letters.`;
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

function adviseOn(plan: Plan, { sorted }: Scan, read: number | null): string {
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
  return countCharacters(word) < INDEXED_LENGTH;
}

/** Whether a longer text could be found by an index, which holds those of single texts alone. */
function isShortMatch(condition: Condition): boolean {
  if (condition.kind !== "match" || condition.column.multiple) return false;
  return isTextual(condition.column) && isShort(condition.text);
}
