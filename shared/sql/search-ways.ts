/** Builds the ways to the entries of a search: through the index of words, through those of its filters, or both. */
import { fromSql } from "./matching.ts";
import { lookupSql } from "./page-query.ts";
import type { SearchOrder } from "./search-order.ts";

/** What the entries of a search must meet, in SQL, and their order. */
export type Search = {
  readonly typeId: string;
  readonly words: readonly string[];
  /** The first of the words: those whose keys are looked up. */
  readonly lookedUp: readonly string[];
  readonly tests: readonly string[];
  /** Those of the tests that an index serves. */
  readonly served: readonly string[];
  readonly order: SearchOrder;
};

/** The tests by the index of keys, of which each is of a term and a type (schema/0006_words.sql). */
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

/**
 * FROM and WHERE that find the entries of the words, then test them. The order may test better whether an entry contains
 * the words, unless most of those that the keys find do not.
 */
export function wordsFirstSql(
  { typeId, words, lookedUp, tests, order }: Search,
  gates: readonly string[] = [],
): string {
  const contained = words.map((word, index) =>
    order.contains === null || index >= lookedUp.length
      ? containsSql(word)
      : `CASE WHEN (SELECT contained_${index} FROM asked) THEN true ELSE ${containsSql(word)} END`,
  );
  const found = [...mayContainSql(lookedUp), typeSql(typeId), ...contained];
  if (order.contains !== null) found.push(order.contains);
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
  WHERE ${gateSql("filters first")}`;
}

/**
 * FROM and WHERE that find the entries of the words and those of the filters, and look for the words in those that are
 * both. The test is no join: the planner cannot read the entries of the filters again for each entry of the words. For
 * that the limit has to tell it that they fit in memory.
 */
function intersectedSql(search: Search): string {
  const passing = `SELECT e.id ${fromSql(search, search.tests)} LIMIT ${MOST_PASSING}`;
  return wordsFirstSql({ ...search, tests: [] }, [gateSql("both"), `(w.id IN (${passing})) IS TRUE`]);
}

// ---- The choice between the ways

/**
 * SQL of the ways to the entries of a search with filters, each of FROM and WHERE, and of the tables that choose one of them
 * when the statement runs: nothing tells the planner how many entries have a word.
 */
export function chosenWays(search: Search): { readonly tables: readonly string[]; readonly ways: readonly string[] } {
  return {
    tables: [foundSql(search), chosenSql(search)],
    ways: [filtersFirstSql(search), wordsFirstSql(search, [gateSql("words first")]), intersectedSql(search)],
  };
}

/** The ways to the entries that have the words and pass the filters. */
type Way = "words first" | "filters first" | "both";

/** The filters of so few entries are looked at one by one. */
const FEWEST_FOUND = 100;
/** Up to so many entries with the words are counted. */
const FEW_FOUND = 5_000;
/** Up to so many entries that pass the filters are found first, if more have the words. */
const FEW_PASSING = 10_000;
/** Up to so many entries that pass the filters are found at all. */
const MOST_PASSING = 50_000;
/** Finding an entry that passes the filters takes such a part of the time that reading the text of one with the words does. */
const READING_COST = 20;

/**
 * One row of how many entries may contain the words, one more than FEW_FOUND at most, and how many of those that pass are
 * few beside them.
 */
function foundSql({ typeId, lookedUp }: Search): string {
  const tests = [...mayContainSql(lookedUp), typeSql(typeId)];
  return `found AS MATERIALIZED (SELECT count(*) AS total, least(${READING_COST} * count(*), ${MOST_PASSING}) AS most
  FROM (SELECT FROM precast.entry_words AS w WHERE ${tests.join(" AND ")} LIMIT ${FEW_FOUND + 1}) AS some_of_them)`;
}

/** One row that tells the way. Of the entries that pass, no more are counted than would be few, by indexes of filters. */
function chosenSql({ typeId, served }: Search): string {
  const some = `SELECT ${fromSql({ typeId }, served)} LIMIT (SELECT most + 1 FROM found)`;
  return `chosen AS MATERIALIZED (SELECT CASE
    WHEN total <= ${FEWEST_FOUND} OR passing > most THEN 'words first'
    WHEN total <= ${FEW_FOUND} OR passing > ${FEW_PASSING} THEN 'both' ELSE 'filters first' END AS way
  FROM (SELECT *, CASE WHEN total > ${FEWEST_FOUND} THEN (SELECT count(*) FROM (${some}) AS some_of_them) END AS passing
    FROM found OFFSET 0) AS counted)`;
}

function gateSql(way: Way): string {
  return `(SELECT way = '${way}' FROM chosen)`;
}
