/** Builds the tests on parts of texts, and says which texts the trigram index finds. */
import type { Condition, MatchCondition } from "../condition.ts";
import { isPrefix } from "./prefix.ts";
import { type Bind, matchTest } from "./where.ts";

/**
 * The test of a `contains` or `starts_with` condition on a slot. The column `texts` holds the lower-case texts of all
 * slots, one line each, which begins with the number of the slot (schema/0004_slots.sql), and a trigram index finds
 * parts of it. To find a prefix, the LIKE pattern contains the slot number but not the line feed before it: every row
 * has line feeds, so looking for one costs more than it narrows.
 */
export function matchSql(condition: MatchCondition, slot: string, bind: Bind, isGeneric: boolean): string {
  const { text, operator } = condition;
  const line = slot.slice(1);
  // In `texts`, a line feed within a value is stored as a carriage return.
  const stored = text.replaceAll("\n", "\r");
  const wanted = (value: string) => loweredSql(bind(value), isGeneric);
  const like = wanted(stored.replace(/[\\%_]/g, "\\$&"));
  const found = `e.texts LIKE '%${operator === "contains" ? "" : line}' || ${like} || '%'`;
  if (/[\r\n]/.test(text)) return `${found} AND ${matchTest(condition, `e.${slot}`, bind)}`;
  if (operator === "starts_with") return `${found} AND strpos(e.texts, E'\\n${line}' || ${wanted(stored)}) > 0`;
  const own = `split_part(split_part(e.texts, E'\\n${line}', 2), E'\\n', 1)`;
  return `${found} AND strpos(${own}, ${wanted(stored)}) > 0`;
}

/**
 * SQL of a search text in lower case, under the collation of the searched columns: their indexes serve no other one. In
 * a plan for all values a subquery computes it once, not once per row; a plan for one value contains the result.
 */
export function loweredSql(text: string, isGeneric: boolean): string {
  const lower = `lower(${text}::text COLLATE "und-x-icu") COLLATE "C"`;
  return isGeneric ? `(SELECT ${lower})` : `(${lower})`;
}

/** The number of letters from which an index finds parts of words and texts. */
export const INDEXED_LENGTH = 3;

/**
 * Whether the trigram index finds this text under every locale: then one query plan fits all such texts. The index
 * needs three letters or digits in a row, and in some locales it handles ASCII only.
 */
export function isTrigramServed(text: string): boolean {
  return /[a-z0-9]{3}/i.test(text);
}

/** The texts of the `contains` and `starts_with` conditions that the trigram index may serve. */
export function textsIn(conditions: readonly Condition[]): string[] {
  return conditions.flatMap((condition) =>
    condition.kind === "match" && !isPrefix(condition) ? [condition.text] : [],
  );
}
