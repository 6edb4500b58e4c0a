/** Builds the queries of searches: entries that contain all words, in their order. Source: contract.md section 4. */
import type { Sort } from "../api/columns.ts";
import type { Condition } from "../api/filter.ts";
import type { SearchPlan } from "../api/plan.ts";
import { type Slots, storedIn } from "./columns.ts";
import { findIndex, loweredSql, testSql, textsIn } from "./conditions.ts";
import {
  fromSql,
  gatheredSql,
  lookupSql,
  offsetSql,
  openStatement,
  type Parts,
  pageQuery,
  placedSql,
  recurring,
  type SortKey,
  type Statement,
  sortKeys,
  storedKeys,
} from "./page.ts";
import type { Query } from "./query.ts";
import { adaptiveSql, endingFrom, scanSql } from "./scan.ts";

/** Builds the query of one page of a search; its rows are those of pageQuery. */
export function searchQuery(appKey: string, plan: SearchPlan, slots: Slots): Query {
  const statement = openStatement(appKey, plan, slots);
  const scanned = scannedOrder(plan, slots);
  const tests = plan.conditions.map((condition) => testSql(condition, slots, statement.values.bind));
  const served = tests.filter((_, index) => findIndex(plan.conditions[index] as Condition, slots) === "ordered");
  // What is best for the values is decided when the statement runs.
  const isGeneric = served.length === tests.length;
  const words = longestFirst(plan.words).map((word) => loweredSql(statement.values.bind(word), isGeneric));
  const order = scanned === null ? searchOrder(plan.sort, words, slots) : WITHOUT_ENTRY;
  const lookedUp = words.slice(0, MAX_LOOKED_UP);
  const search = { typeId: statement.typeId, words, lookedUp, tests, served, order };
  const parts =
    scanned === null ? gatheredParts(statement, search, slots) : sortedParts(statement, scanned, wordsFirstSql(search));
  const query = pageQuery(statement, { ...parts, tables: [askedSql(search), ...parts.tables] });
  return recurring(query, textsIn(plan.conditions), isGeneric);
}

/** The parts of a search whose matches are all found, then sorted. */
function gatheredParts(statement: Statement, search: Search, slots: Slots): Parts {
  const isChosen = search.served.length > 0 && search.words.length > 0 && !slots.isSmall;
  const gathered = (ways: readonly string[]) => gatheredSql(statement, ways, "w.id", search.order.keys);
  if (!isChosen) return gathered([wordsFirstSql(search)]);
  const parts = gathered([
    filtersFirstSql(search),
    wordsFirstSql(search, [gateSql("words first")]),
    intersectedSql(search),
  ]);
  return { ...parts, tables: [foundSql(search), chosenSql(search), ...parts.tables] };
}

/** A scan has an order of its own. */
const WITHOUT_ENTRY: SearchOrder = { keys: [], readsEntry: false, beside: [], contains: null };

/** The order in which a scan may find the page; null without one. The texts have the time of publication themselves. */
function scannedOrder({ sort, words, conditions }: SearchPlan, slots: Slots): IndexedOrder | null {
  if (sort === null || sort.column.name === "published_at" || slots.isSmall) return null;
  const stored = storedIn(sort.column, slots);
  return stored === null || words.length === 0 || conditions.length > 0 ? null : { sort, stored };
}

/**
 * The keys of so many words are looked up, which narrows what is found enough: for a word of one or two letters, of which
 * a search may have a hundred, that reads all terms of the type.
 */
const MAX_LOOKED_UP = 4;

/** The words of a search whose keys are looked up. */
export function wordsLookedUp({ words }: SearchPlan): readonly string[] {
  return longestFirst(words).slice(0, MAX_LOOKED_UP);
}

/** Few entries have long words, and few of the terms have to be read for them. */
function longestFirst(words: readonly string[]): string[] {
  return [...words].sort((one, other) => other.length - one.length);
}

/**
 * One row of the keys of the entries that may contain each word that is looked up (schema/0006_words.sql), and whether
 * these entries are known to contain it, but for another term that has the same key.
 */
function askedSql({ typeId, lookedUp }: Search): string {
  const columns = lookedUp.map(
    (_, index) =>
      `keys_${index}, NOT (precast.is_unspaced(word_${index}) OR keys_${index} = ARRAY[precast.term_key(${typeId}, '')]) AS contained_${index}`,
  );
  const looked = lookedUp.map(
    (word, index) => `${word} AS word_${index}, precast.keys_with(${typeId}, ${word}) AS keys_${index}`,
  );
  return `asked AS MATERIALIZED (SELECT ${columns.join(", ")} FROM (SELECT ${looked.join(", ")} OFFSET 0) AS looked_up)`;
}

// Builds the ways to the entries of a search: through the index of words, through those of its filters, or both.

/** What the entries of a search must meet, in SQL, and their order. */
type Search = {
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

/** Hidden from the planner, which does not know how few entries have a key, and would read all of the type. */
function typeSql(typeId: string): string {
  return `w.content_type_id + 0 = ${typeId}`;
}

/** `entry_words` has rows of published entries only. */
const SAME_ENTRY = "e.content_type_id = w.content_type_id AND e.id = w.id";

/**
 * FROM and WHERE that find the entries of the words, then test them. The order may test better whether an entry contains
 * the words, unless most of those that the keys find do not.
 */
function wordsFirstSql({ typeId, words, lookedUp, tests, order }: Search, gates: readonly string[] = []): string {
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

// Chooses the way to the entries of a search with filters when the statement runs: nothing tells the planner how many
// entries have a word.

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

// Builds the order of a search, of entries `e` with the searched texts `w`. Without a sort, entries that contain
// every word as a full word come first, and within each group those in which the words occur more often.

const NEWEST_TEXTS_FIRST: readonly SortKey[] = [
  { value: "w.published_at", direction: "DESC" },
  { value: "w.id", direction: "ASC" },
];

type SearchOrder = {
  readonly keys: readonly SortKey[];
  /** Whether the keys read the entry `e`. */
  readonly readsEntry: boolean;
  /** The joins that the keys need. */
  readonly beside: readonly string[];
  /** A test, made of what the keys need anyway, that `w` contains all words; null where they need nothing of it. */
  readonly contains: string | null;
};

function searchOrder(sort: Sort | null, words: readonly string[], slots: Slots): SearchOrder {
  if (sort === null) return relevanceOrder(words);
  if (sort.column.name === "published_at") return { ...WITHOUT_ENTRY, keys: NEWEST_TEXTS_FIRST };
  // A slot spares reading the value out of `data`.
  const [key] = sortKeys(sort, storedIn(sort.column, slots) ?? undefined) as [SortKey];
  return { ...WITHOUT_ENTRY, keys: [key, ...NEWEST_TEXTS_FIRST], readsEntry: true };
}

/**
 * Reads the text of an entry once for each word if it contains all of them as full words, and twice if not: only then the
 * occurrences as parts of words are counted. OFFSET 0 keeps the planner from merging the subqueries and counting again.
 */
function relevanceOrder(words: readonly string[]): SearchOrder {
  if (words.length === 0) return { ...WITHOUT_ENTRY, keys: NEWEST_TEXTS_FIRST };
  const each = (text: (word: string, index: number) => string, between: string) => words.map(text).join(between);
  const complete = `(${each((_, index) => `whole.count_${index} > 0`, " AND ")})`;
  const whole = each((word, index) => `${occurrences(`(' ' || ${word} || ' ')`)} AS count_${index}`, ", ");
  const part = each((word, index) => `CASE WHEN NOT ${complete} THEN ${occurrences(word)} END AS count_${index}`, ", ");
  const sumSql = (table: string) => each((_, index) => `${table}.count_${index}`, " + ");
  return {
    keys: [
      { value: complete, direction: "DESC" },
      { value: `CASE WHEN ${complete} THEN ${sumSql("whole")} ELSE ${sumSql("part")} END`, direction: "DESC" },
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

// Builds the page of a search that is sorted by an indexed column. If many entries have the words, a scan in the
// order soon meets enough of them, and no other entries have to be read for their values.

/** A scan of an index passes so many entries in the time that looking one up by its key takes. */
const PACE = 16;

/** `stored` is SQL of the entries column that the search is sorted by. */
type IndexedOrder = { readonly sort: Sort; readonly stored: string };

/** `found` is SQL of FROM and WHERE that find the texts `w` with the words. */
function sortedParts(statement: Statement, { sort, stored }: IndexedOrder, found: string): Parts {
  const keys = storedKeys(sort, stored);
  const isMatch = "(e.id IN (SELECT id FROM matched)) IS TRUE";
  const ids = adaptiveSql(statement, {
    from: (test) => `FROM matched ${lookupSql("e.content_type_id = matched.content_type_id AND e.id = matched.id")}
    WHERE ${test}`,
    scan: (test, most) => {
      const ending = { served: [`${stored} IS NOT NULL`, test], tests: [isMatch], most: String(most), read: [] };
      return scanSql(statement, endingFrom(statement, ending), keys, null);
    },
    // The scan leaves out entries without a value, which come last: where the page holds some, all are found.
    keys: sortKeys(sort, stored),
    total: "SELECT total FROM whole",
    before: `${offsetSql(statement)}::float8`,
    share: 1,
    pace: PACE,
    ends: true,
  });
  const matched = `matched AS MATERIALIZED (
  SELECT w.content_type_id, w.id ${found})`;
  const whole = "whole AS MATERIALIZED (SELECT count(*) AS total FROM matched)";
  return { tables: [matched, whole], ...placedSql(statement, ids), total: "SELECT total FROM whole" };
}
