/** Says whether an index served a query or entries were read one by one, and what would help. */
import { type Condition, isNegated } from "../../shared/condition.ts";
import type { Plan } from "../../shared/plan.ts";
import { isTextual } from "../../shared/sql/column.ts";
import { wordsLookedUp } from "../../shared/sql/search-query.ts";
import { INDEXED_LENGTH } from "../../shared/sql/trigram.ts";
import { lengthOf } from "../../shared/value.ts";
import { formatCount, formatCounted } from "../terminal/format.ts";
import type { QueryPlan } from "./plan-node.ts";
import { isServed, largestScan, rowsRead, type Scan } from "./scan.ts";

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
  const scan = largestScan(root);
  if (scan === null) return { by_index: true, indexes: [], read: 0, sentence: "The query reads no entries." };
  const read = ran ? rowsRead(scan.node) : null;
  const found = { indexes: scan.indexes, read: scan.tests ? null : read };
  if (isServed(scan) && !readsAll(plan, read, entries))
    return { ...found, by_index: true, sentence: `${servedSentence(scan, read, entries)}${termsSentence(plan)}` };
  const sentence = `${readSentence(scan, read, entries)} ${helpOf(plan, scan, read ?? entries)}`;
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

/** Whether a longer text could be found by an index, which holds those of single texts alone. */
function isShortMatch(condition: Condition): boolean {
  if (condition.kind !== "match" || condition.column.multiple) return false;
  return isTextual(condition.column) && isShort(condition.text);
}
