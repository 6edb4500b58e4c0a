/** Builds the queries of searches: entries that contain all words, in their order. Source: contract.md section 4. */
import type { SearchPlan } from "../plan.ts";
import type { Query } from "../query.ts";
import type { Sort } from "../sort.ts";
import { loweredSql, storedIn, testOf, textsIn } from "./indexed.ts";
import { fromSql } from "./matching.ts";
import { type SortKey, sortKeys } from "./order.ts";
import { gatheredSql, lookupSql, pageQuery, recurring, statementOf } from "./page-query.ts";
import type { Slots } from "./slots.ts";

/**
 * Builds the query of one page of a search; its rows are those of pageQuery. Without a sort, entries that contain every
 * word as a full word come first, and within each group those in which the words occur more often.
 */
export function searchQuery(appKey: string, plan: SearchPlan, slots: Slots): Query {
  const statement = statementOf(appKey, plan, slots);
  const { bind } = statement.values;
  const isGeneric = plan.conditions.length === 0;
  const words = longestFirst(plan.words).map((word) => loweredSql(bind(word), isGeneric));
  const tests = plan.conditions.map((condition) => testOf(condition, slots, bind));
  const order = orderOf(plan.sort, words, slots);
  const lookedUp = words.slice(0, MAX_LOOKED_UP);
  const search = { typeId: statement.typeId, words, lookedUp, tests: tests.map(({ sql }) => sql), order };
  const mayBeginWithFilters = tests.some(({ index }) => index === "ordered") && words.length > 0 && !slots.isSmall;
  const [tables, ways] = mayBeginWithFilters
    ? [
        [askedSql(search), chosenSql(search)],
        [filtersFirstSql(search), wordsFirstSql(search, [`NOT ${FILTERS_FIRST}`])],
      ]
    : [[askedSql(search)], [wordsFirstSql(search)]];
  const parts = gatheredSql(statement, ways, "w.id", order.keys);
  const query = pageQuery(statement, { ...parts, tables: [...tables, ...parts.tables] });
  return recurring(query, textsIn(plan.conditions), isGeneric);
}

/** What the entries of a search must meet, in SQL, and their order. */
type Search = {
  readonly typeId: string;
  readonly words: readonly string[];
  /** The first of the words: those whose keys are looked up. */
  readonly lookedUp: readonly string[];
  readonly tests: readonly string[];
  readonly order: Order;
};

/**
 * The keys of so many words are looked up, which narrows what is found enough: for a word of one or two letters, of which
 * a search may have a hundred, that reads all terms of the type.
 */
const MAX_LOOKED_UP = 4;

/** Few entries have long words, and few of the terms have to be read for them. */
function longestFirst(words: readonly string[]): string[] {
  return [...words].sort((one, other) => other.length - one.length);
}

/** One row of the keys of the entries that may contain each word that is looked up (schema/0018_terms.sql). */
function askedSql({ typeId, lookedUp }: Search): string {
  const keys = lookedUp.map((word, index) => `precast.keys_with(${typeId}, ${word}) AS keys_${index}`);
  return `asked AS MATERIALIZED (SELECT ${keys.join(", ")})`;
}

/** If at most so many entries have the words, they are found first: that takes no longer than to look at the filters. */
const FEW_FOUND = 2_000;
/** Up to so many entries that pass the filters are found first where more have the words. */
const FEW_PASSING = 10_000;
const FILTERS_FIRST = "(SELECT filters_first FROM chosen)";

/** One row that tells whether to begin with the entries of the filters. Nothing tells the planner how many have a word. */
function chosenSql({ typeId, lookedUp, tests }: Search): string {
  const atMost = (limit: number, from: string) =>
    `(SELECT count(*) <= ${limit} FROM (SELECT ${from} LIMIT ${limit + 1}) AS some_of_them)`;
  const found = `FROM precast.entry_words AS w WHERE ${mayContainSql(lookedUp).join(" AND ")}`;
  const passed = fromSql({ typeId }, tests);
  return `chosen AS MATERIALIZED (SELECT CASE WHEN ${atMost(FEW_FOUND, found)} THEN false ELSE ${atMost(FEW_PASSING, passed)} END AS filters_first)`;
}

/** The tests by the index of keys, of which each is of a term and a type (schema/0018_terms.sql). */
function mayContainSql(lookedUp: readonly string[]): string[] {
  return lookedUp.map(
    (_, index) => `precast.term_keys(w.content_type_id, w.words) && (SELECT keys_${index} FROM asked)`,
  );
}

function containsSql(word: string): string {
  return `w.words LIKE '%' || ${word} || '%'`;
}

/**
 * Hidden from the planner, which does not know how few entries have a key, and would rather read all of the type.
 */
function typeSql(typeId: string): string {
  return `w.content_type_id + 0 = ${typeId}`;
}

/** `entry_words` has rows of published entries only. */
const SAME_ENTRY = "e.content_type_id = w.content_type_id AND e.id = w.id";

/** FROM and WHERE that find the entries of the words, then test them. */
function wordsFirstSql({ typeId, words, lookedUp, tests, order }: Search, gates: readonly string[] = []): string {
  const found = [...mayContainSql(lookedUp), typeSql(typeId), ...words.map(containsSql)];
  const entry = tests.length > 0 || order.readsEntry ? [lookupSql(SAME_ENTRY)] : [];
  return `FROM ${["precast.entry_words AS w", ...entry, ...order.beside].join("\n  ")}
  WHERE ${[...gates, ...(words.length === 0 ? ["false"] : found), ...tests].join("\n    AND ")}`;
}

/**
 * FROM and WHERE that find the entries of the filters, then look for the words in them. The limit tells the planner how
 * few they are.
 */
function filtersFirstSql({ typeId, words, tests, order }: Search): string {
  const passed = `(SELECT * ${fromSql({ typeId }, tests)} LIMIT ${FEW_PASSING}) AS e`;
  const test = [SAME_ENTRY, ...words.map(containsSql)].join(" AND ");
  const read = `CROSS JOIN LATERAL (SELECT * FROM precast.entry_words AS w WHERE ${test} OFFSET 0) AS w`;
  return `FROM ${[passed, read, ...order.beside].join("\n  ")}
  WHERE ${FILTERS_FIRST}`;
}

const NEWEST_FIRST: readonly SortKey[] = [
  { value: "w.published_at", direction: "DESC" },
  { value: "w.id", direction: "ASC" },
];

/** The sort keys, whether they read the entry `e`, and the joins that they need beside it. */
type Order = {
  readonly keys: readonly SortKey[];
  readonly readsEntry: boolean;
  readonly beside: readonly string[];
};

function orderOf(sort: Sort | null, words: readonly string[], slots: Slots): Order {
  if (sort === null) return relevanceOrder(words);
  if (sort.column.name === "published_at") return { keys: NEWEST_FIRST, readsEntry: false, beside: [] };
  const [{ value, direction }] = sortKeys(sort) as [SortKey];
  // A slot spares reading the value out of `data`.
  const stored = storedIn(sort.column, slots) ?? value;
  return { keys: [{ value: stored, direction }, ...NEWEST_FIRST], readsEntry: true, beside: [] };
}

function relevanceOrder(words: readonly string[]): Order {
  if (words.length === 0) return { keys: NEWEST_FIRST, readsEntry: false, beside: [] };
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
    readsEntry: false,
    // OFFSET 0 keeps the planner from merging the subquery, so that each word is counted once per entry.
    beside: [`CROSS JOIN LATERAL (SELECT ${full.join(", ")} OFFSET 0) AS counted`],
  };
}

/** SQL of the number of occurrences of a word. Lengths in bytes give the same number as in characters, but faster. */
function occurrences(word: string): string {
  return `(octet_length(w.words) - octet_length(replace(w.words, ${word}, ''))) / octet_length(${word})`;
}
