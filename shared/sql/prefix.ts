/** Builds the test of a prefix as a range of the order of texts, which a B-tree index serves. */
import type { Condition, MatchCondition } from "../condition.ts";
import { isTextual } from "./column.ts";
import type { Bind } from "./where.ts";

/**
 * Whether all texts that meet the condition lie in one range of the order by "und-x-icu". That is certain for those that
 * begin, in either case, with letters and digits of ASCII and spaces: no character that follows changes their weights
 * there.
 */
export function isPrefix(condition: Condition): boolean {
  if (condition.kind !== "match" || condition.operator !== "starts_with") return false;
  return isTextual(condition.column) && /^[a-z0-9 ]+$/i.test(condition.text);
}

/** The range ends where texts begin with the next character. It also holds texts with accents, hence the last test. */
export function prefixSql({ text }: MatchCondition, stored: string, bind: Bind): string {
  const lower = text.toLowerCase();
  const prefix = `${bind(lower)}::text`;
  const end = `${bind(lower.slice(0, -1) + following(lower.slice(-1)))}::text`;
  return `${stored} >= ${prefix} AND ${stored} < ${end} AND starts_with(lower(${stored}), ${prefix})`;
}

/** The order by "und-x-icu" has the space before other signs, then digits, then Latin letters, then Greek ones. */
const FOLLOWING: Readonly<Record<string, string>> = { " ": "_", "9": "a", z: "α" };

function following(character: string): string {
  return FOLLOWING[character] ?? String.fromCharCode(character.charCodeAt(0) + 1);
}
