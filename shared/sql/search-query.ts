/** Builds the queries of searches: entries that contain all words, in their order. Source: contract.md section 4. */
import type { Query } from "../database/database.ts";
import type { SearchPlan } from "../plan.ts";
import type { Sort } from "../sort.ts";
import { isTrigramServed, loweredSql, storedIn, testOf, textsIn } from "./indexed.ts";
import { type SortKey, sortKeys } from "./order.ts";
import { gatheredSql, lookupSql, pageQuery, recurring, statementOf } from "./page-query.ts";
import { isKnownSql, isSmallSql } from "./query.ts";
import type { Slots } from "./slots.ts";

/**
 * Builds the query of one page of a search; its rows are those of pageQuery. Without a sort, entries that contain every
 * word as a full word come first, and within each group those in which the words occur more often.
 */
export function searchQuery(appKey: string, plan: SearchPlan, slots: Slots): Query {
  const statement = statementOf(appKey, plan, slots);
  const { bind } = statement.values;
  const isGeneric = plan.conditions.length === 0 && plan.words.every(isTrigramServed);
  const words = plan.words.map((word) => loweredSql(bind(word), isGeneric));
  const found = words.length === 0 ? ["false"] : words.map((word) => `w.words LIKE '%' || ${word} || '%'`);
  const tests = plan.conditions.map((condition) => testOf(condition, slots, bind).sql);
  const { keys, beside } = orderOf(plan.sort, words, slots);
  const entries = entriesOf(slots);
  const joined = new Set([...(tests.length > 0 ? [entries] : []), ...beside]);
  const from = `FROM ${["precast.entry_words AS w", ...joined].join("\n  ")}
  WHERE ${[`w.content_type_id = ${statement.typeId}`, ...found, ...tests].join("\n    AND ")}`;
  const premise = joined.has(entries) ? { premise: premiseSql(statement.typeId, slots) } : {};
  const query = pageQuery(statement, { ...gatheredSql(statement, from, "w.id", keys), ...premise });
  return recurring(query, [...plan.words, ...textsIn(plan.conditions)], isGeneric);
}

/**
 * The entries of the words. `entry_words` has rows of published entries only: the test of the status lets the indexes of
 * slots serve, which find the entries of a filter. A join can begin with these, and is faster than lookups, but not in a
 * small type, and takes minutes where the statistics do not know the type.
 */
function entriesOf({ isSmall, isKnown }: Slots): string {
  const key = "e.content_type_id = w.content_type_id AND e.id = w.id AND e.status = 'published'";
  return isSmall || !isKnown ? lookupSql(key) : `JOIN precast.entries AS e ON ${key}`;
}

/** What the choice between join and lookups relies on. */
function premiseSql(typeId: string, { isSmall, isKnown }: Slots): string {
  return isSmall ? isSmallSql(typeId) : `${isKnownSql(typeId)} = ${isKnown}`;
}

const NEWEST_FIRST: readonly SortKey[] = [
  { value: "w.published_at", direction: "DESC" },
  { value: "w.id", direction: "ASC" },
];

/** The sort keys, and the joins that they need. */
type Order = { readonly keys: readonly SortKey[]; readonly beside: readonly string[] };

function orderOf(sort: Sort | null, words: readonly string[], slots: Slots): Order {
  if (sort === null) return relevanceOrder(words);
  if (sort.column.name === "published_at") return { keys: NEWEST_FIRST, beside: [] };
  const [{ value, direction }] = sortKeys(sort) as [SortKey];
  // A slot spares reading the value out of `data`.
  const stored = storedIn(sort.column, slots) ?? value;
  return { keys: [{ value: stored, direction }, ...NEWEST_FIRST], beside: [entriesOf(slots)] };
}

function relevanceOrder(words: readonly string[]): Order {
  if (words.length === 0) return { keys: NEWEST_FIRST, beside: [] };
  const full = words.map((word, index) => `${occurrences(`(' ' || ${word} || ' ')`)} AS full_${index}`);
  const complete = words.map((_, index) => `counted.full_${index} > 0`).join(" AND ");
  const sum = words.map((_, index) => `counted.full_${index}`).join(" + ");
  const partial = words.map(occurrences).join(" + ");
  return {
    keys: [
      { value: `(${complete})`, direction: "DESC" },
      { value: `CASE WHEN ${complete} THEN ${sum} ELSE ${partial} END`, direction: "DESC" },
      ...NEWEST_FIRST,
    ],
    // OFFSET 0 keeps the planner from merging the subquery, so that each word is counted once per entry.
    beside: [`CROSS JOIN LATERAL (SELECT ${full.join(", ")} OFFSET 0) AS counted`],
  };
}

/** SQL of the number of occurrences of a word. Lengths in bytes give the same number as in characters, but faster. */
function occurrences(word: string): string {
  return `(octet_length(w.words) - octet_length(replace(w.words, ${word}, ''))) / octet_length(${word})`;
}
