/** Says whether an index served a query or entries were read one by one, and what would help. */
import { type Condition, isNegated } from "../../shared/condition.ts";
import type { Plan } from "../../shared/plan.ts";
import { formatCount } from "../terminal/format.ts";
import type { PlanNode, QueryPlan } from "./plan-node.ts";

export type Service = {
  readonly by_index: boolean;
  /** The indexes that entries were found by. */
  readonly indexes: readonly string[];
  /** Entries that were read to find those that are wanted; null where the query was not run. */
  readonly read: number | null;
  readonly sentence: string;
};

/** `entries` is how many the type shows; null where it is not known. */
export function serviceOf({ root, ran }: QueryPlan, plan: Plan, entries: number | null): Service {
  const scan = widest(scansOf(root, false));
  if (scan === null) return { by_index: true, indexes: [], read: 0, sentence: "No entry is read for it." };
  const read = ran ? readBy(scan.node) : null;
  const service = { indexes: scan.indexes, read };
  if (isServed(scan)) return { ...service, by_index: true, sentence: servedSentence(scan, read, entries) };
  const sentence = `${readSentence(scan, read, entries)} ${helpOf(plan, scan, read ?? entries)}`;
  return { ...service, by_index: false, sentence };
}

type Scan = { readonly node: PlanNode; readonly indexes: readonly string[]; readonly sorted: boolean };

/** They say which entries are asked for, and are a few rows. */
const DEFINITIONS = ["apps", "content_types", "fields", "slots", "entry_counts", "value_counts"];

/** Where entries are read. `sorted` says that all of them are put in order before a part of them is taken. */
function scansOf(node: PlanNode, sorted: boolean): Scan[] {
  const { table, nodes, step } = node;
  const own = sorted && node.name === null;
  if (table !== null) return DEFINITIONS.includes(table) ? [] : [{ node, indexes: indexesOf(node), sorted: own }];
  const above = !TAKES_PART.includes(step) && (own || step === "Sort");
  return nodes.flatMap((below) => scansOf(below, above));
}

/** What comes out of these are other rows, or fewer: an order that is made later is no matter of what is read. */
const TAKES_PART = ["Limit", "Aggregate", "WindowAgg"];

/** A bitmap is made of one index or of several, in steps of their own. */
function indexesOf({ index, nodes }: PlanNode): string[] {
  return [...new Set([...(index === null ? [] : [index]), ...nodes.flatMap(indexesOf)])];
}

/** The one that reads most; of those that read as much, one that no index serves. */
function widest(scans: readonly Scan[]): Scan | null {
  const rank = (scan: Scan) => readBy(scan.node) + (isServed(scan) ? 0 : 0.5);
  return [...scans].sort((a, b) => rank(b) - rank(a))[0] ?? null;
}

function readBy({ rows, discarded }: PlanNode): number {
  return (rows.actual ?? rows.estimated) + (discarded ?? 0);
}

/** An index that tells no more than the type's entries apart serves where they are wanted as they stand in it. */
function isServed(scan: Scan): boolean {
  if (scan.indexes.length === 0) return false;
  return narrows(scan.node) || (filterOf(scan.node) === null && !scan.sorted);
}

function narrows({ condition, nodes }: PlanNode): boolean {
  const parts = condition?.split(" AND ") ?? [];
  return parts.some((part) => !part.includes("content_type_id")) || nodes.some(narrows);
}

/** The status stands in the conditions of partial indexes. */
function filterOf({ filter }: PlanNode): string | null {
  return filter === null || /^\(?(\w+\.)?status = '\w+'::text\)?$/.test(filter) ? null : filter;
}

function servedSentence({ node, indexes }: Scan, read: number | null, entries: number | null): string {
  const served = `Served by index ${indexes.join(" and ")}`;
  if (read === null) return `${served}.`;
  const of = entries === null || read > entries ? "" : ` of ${formatCount(entries)}`;
  const left = node.discarded ? `, ${formatCount(node.discarded)} of them in vain` : "";
  return `${served}: reads ${formatCount(read)}${of} entries${left}.`;
}

/** An index may give the entries of the type, or their order, and find none of those that are wanted. */
function readSentence({ indexes }: Scan, read: number | null, entries: number | null): string {
  const why = indexes.length === 0 ? "no index served" : "no index found those that are wanted";
  if (read === null || entries === null) return `Reads every entry of the type: ${why}.`;
  if (read < entries) return `Reads ${formatCount(read)} of the type's ${formatCount(entries)} entries: ${why}.`;
  const others = read - entries;
  const more = others > 0 ? `, and ${formatCount(others)} rows beside them` : "";
  return `Reads all ${formatCount(entries)} entries of the type${more}: ${why}.`;
}

/** To read so many entries takes a few milliseconds, and an index hardly less. */
const FEW = 2_000;
/** Indexes find parts of words by three letters at a time. */
const LETTERS = 3;

function helpOf(plan: Plan, { sorted }: Scan, read: number | null): string {
  if (read !== null && read <= FEW) return "With so few, none is needed.";
  const conditions = "conditions" in plan ? plan.conditions : [];
  if (plan.kind === "search" && plan.words.every(isShort)) return `A word of ${LETTERS} letters or more would help.`;
  if (conditions.some(isNegated)) return "Most entries meet neq and nin: name what is wanted with eq or in.";
  if (conditions.some(isShortMatch)) return `A text of ${LETTERS} letters or more would help.`;
  const order = sorted && conditions.length === 0 ? "The default order" : "One more filter, on a value that few have,";
  return `${order} would help. \`precast doctor\` tells whether the database lacks something.`;
}

function isShort(word: string): boolean {
  return [...word].length < LETTERS;
}

function isShortMatch(condition: Condition): boolean {
  return condition.kind === "match" && isShort(condition.text);
}
