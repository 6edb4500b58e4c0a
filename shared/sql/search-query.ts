/** Builds the queries of searches: entries that contain all words, in their order. Source: contract.md section 4. */
import type { SearchPlan } from "../plan.ts";
import type { Query } from "../query.ts";
import { sqlOf, testOf } from "./indexed.ts";
import { gatheredSql, type Parts, pageQuery, recurring, type Statement, statementOf } from "./page-query.ts";
import { type SearchOrder, searchOrder } from "./search-order.ts";
import { chosenWays, type Search, wordsFirstSql } from "./search-ways.ts";
import type { Slots } from "./slots.ts";
import { type IndexedOrder, sortedParts } from "./sorted-search.ts";
import { storedIn } from "./stored.ts";
import { loweredSql, textsIn } from "./trigram.ts";

/** Builds the query of one page of a search; its rows are those of pageQuery. */
export function searchQuery(appKey: string, plan: SearchPlan, slots: Slots): Query {
  const statement = statementOf(appKey, plan, slots);
  const scanned = scannedOrder(plan, slots);
  const tests = plan.conditions.map((condition) => testOf(condition, slots, statement.values.bind));
  const served = tests.filter(({ index }) => index === "ordered");
  // What is best for the values is decided when the statement runs.
  const isGeneric = served.length === tests.length;
  const words = longestFirst(plan.words).map((word) => loweredSql(statement.values.bind(word), isGeneric));
  const order = scanned === null ? searchOrder(plan.sort, words, slots) : WITHOUT_ENTRY;
  const lookedUp = words.slice(0, MAX_LOOKED_UP);
  const search = { typeId: statement.typeId, words, lookedUp, tests: sqlOf(tests), served: sqlOf(served), order };
  const parts =
    scanned === null ? gatheredParts(statement, search, slots) : sortedParts(statement, scanned, wordsFirstSql(search));
  const query = pageQuery(statement, { ...parts, tables: [askedSql(search), ...parts.tables] });
  return recurring(query, textsIn(plan.conditions), isGeneric);
}

/** The parts of a search whose matches are all found, then sorted. */
function gatheredParts(statement: Statement, search: Search, slots: Slots): Parts {
  const isChosen = search.served.length > 0 && search.words.length > 0 && !slots.isSmall;
  const { tables, ways } = isChosen ? chosenWays(search) : { tables: [], ways: [wordsFirstSql(search)] };
  const parts = gatheredSql(statement, ways, "w.id", search.order.keys);
  return { ...parts, tables: [...tables, ...parts.tables] };
}

/** The scan has an order of its own. */
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
