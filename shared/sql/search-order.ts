/**
 * Builds the order of a search, of entries `e` with the searched texts `w`. Without a sort, entries that contain every
 * word as a full word come first, and within each group those in which the words occur more often.
 */
import type { Sort } from "../sort.ts";
import { type SortKey, sortKeys } from "./order.ts";
import type { Slots } from "./slots.ts";
import { storedIn } from "./stored.ts";

const NEWEST_TEXTS_FIRST: readonly SortKey[] = [
  { value: "w.published_at", direction: "DESC" },
  { value: "w.id", direction: "ASC" },
];

export type SearchOrder = {
  readonly keys: readonly SortKey[];
  /** Whether the keys read the entry `e`. */
  readonly readsEntry: boolean;
  /** The joins that the keys need. */
  readonly beside: readonly string[];
  /** A test, made of what the keys need anyway, that `w` contains all words; null where they need nothing of it. */
  readonly contains: string | null;
};

export function searchOrder(sort: Sort | null, words: readonly string[], slots: Slots): SearchOrder {
  if (sort === null) return relevanceOrder(words);
  if (sort.column.name === "published_at")
    return { keys: NEWEST_TEXTS_FIRST, readsEntry: false, beside: [], contains: null };
  // A slot spares reading the value out of `data`.
  const [key] = sortKeys(sort, storedIn(sort.column, slots) ?? undefined) as [SortKey];
  return { keys: [key, ...NEWEST_TEXTS_FIRST], readsEntry: true, beside: [], contains: null };
}

/**
 * Reads the text of an entry once for each word if it contains all of them as full words, and twice if not: only then the
 * occurrences as parts of words are counted. OFFSET 0 keeps the planner from merging the subqueries and counting again.
 */
function relevanceOrder(words: readonly string[]): SearchOrder {
  if (words.length === 0) return { keys: NEWEST_TEXTS_FIRST, readsEntry: false, beside: [], contains: null };
  const each = (text: (word: string, index: number) => string, between: string) => words.map(text).join(between);
  const complete = `(${each((_, index) => `whole.count_${index} > 0`, " AND ")})`;
  const whole = each((word, index) => `${occurrences(`(' ' || ${word} || ' ')`)} AS count_${index}`, ", ");
  const part = each((word, index) => `CASE WHEN NOT ${complete} THEN ${occurrences(word)} END AS count_${index}`, ", ");
  const sumOf = (table: string) => each((_, index) => `${table}.count_${index}`, " + ");
  return {
    keys: [
      { value: complete, direction: "DESC" },
      { value: `CASE WHEN ${complete} THEN ${sumOf("whole")} ELSE ${sumOf("part")} END`, direction: "DESC" },
      ...NEWEST_TEXTS_FIRST,
    ],
    readsEntry: false,
    beside: [
      `CROSS JOIN LATERAL (SELECT ${whole} OFFSET 0) AS whole`,
      `CROSS JOIN LATERAL (SELECT ${part} OFFSET 0) AS part`,
    ],
    contains: `(${complete} OR (${each((_, index) => `part.count_${index} > 0`, " AND ")}))`,
  };
}

/** SQL of the number of occurrences of a word. Lengths in bytes give the same number as in characters, but faster. */
function occurrences(word: string): string {
  return `(octet_length(w.words) - octet_length(replace(w.words, ${word}, ''))) / octet_length(${word})`;
}
