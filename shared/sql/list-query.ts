/** The queries of lists: a page in its order and the total, by indexes wherever they serve. */
import type { Query } from "../database/database.ts";
import type { ListPlan } from "../plan.ts";
import { isFindable, isNegated, storedIn, testOf } from "./indexed.ts";
import { keysSql, NEWEST_FIRST, sortKeys } from "./order.ts";
import {
  gatheredSql,
  limitSql,
  offsetSql,
  type Parts,
  pageQuery,
  placedSql,
  placesSql,
  type Statement,
  statementOf,
} from "./page-query.ts";
import { totalOf } from "./query.ts";
import type { Slots } from "./slots.ts";

const NEWEST = keysSql(NEWEST_FIRST);

/** As pageQuery. */
export function listQuery(appKey: string, plan: ListPlan, slots: Slots): Query {
  const statement = statementOf(appKey, plan, slots);
  const tests = plan.conditions.map((condition) => testOf(condition, slots, statement.values.place));
  const matching = tests.map(({ sql }) => sql);
  const stored = tests.every(({ isServed }) => isServed) ? storedIn(plan.sort.column, slots) : null;
  const parts: Parts =
    stored === null
      ? searchedSql(statement, matching, plan)
      : { ...cutSql(statement, matching, plan, stored), total: totalSql(statement, matching, plan, slots) };
  const recurs = plan.conditions.every((condition) => condition.kind !== "match" || isFindable(condition.text));
  return { ...pageQuery(statement, parts), recurs };
}

function searchedSql(statement: Statement, matching: readonly string[], { sort }: ListPlan): Parts {
  const from = `FROM precast.entries AS e\n  WHERE ${where(statement, matching)}`;
  return gatheredSql(statement, from, "e.id", sortKeys(sort));
}

type Cut = Omit<Parts, "total">;

/** A page that an index gives in its order. */
function cutSql(statement: Statement, matching: readonly string[], plan: ListPlan, stored: string): Cut {
  const { sort, conditions } = plan;
  if (isRead(plan)) return { tables: [], ...readSql(statement, matching) };
  const key = keysSql([{ value: stored, direction: sort.descending ? "DESC" : "ASC" }]);
  const order = sort.column.name === "published_at" ? NEWEST : `${key}, ${NEWEST}`;
  const placesOf = (tests: readonly string[]) => placesSql(idsSql(statement, tests, order, limitSql(statement)));
  if (sort.column.type === "timestamp") return { tables: [], ...placedSql(statement, placesOf(matching)) };
  const valued = [...matching, `${stored} IS NOT NULL`];
  // What a filter lets pass has a value.
  if (conditions.some((condition) => condition.column.name === sort.column.name && !isNegated(condition)))
    return { tables: [], ...placedSql(statement, placesOf(valued)) };
  const ids = `
  SELECT id, place FROM valued
  UNION ALL
  SELECT id, ${statement.perPage} + place FROM (${behindSql(statement, matching, valued, stored)}) AS behind`;
  return { tables: [`valued AS MATERIALIZED (${placesOf(valued)})`], ...placedSql(statement, ids) };
}

/** Whether an index holds the first page and nothing before it: then its rows are read as they are found. */
function isRead({ page, sort, conditions }: ListPlan): boolean {
  const [only, ...others] = conditions;
  const isFound = only === undefined || (only.kind === "equals" && (only.negated || only.values.length === 1));
  return page === 1n && sort.column.name === "published_at" && isFound && others.length === 0;
}

function readSql(statement: Statement, matching: readonly string[]): Omit<Cut, "tables"> {
  const page = `
  SELECT ${statement.columns}, e.published_at AS instant, e.id AS uuid
  FROM precast.entries AS e WHERE ${where(statement, matching)}
  ORDER BY ${NEWEST} ${limitSql(statement)}`;
  return { page, order: "page.instant DESC, page.uuid" };
}

/**
 * Entries without a value come behind all others: the index of a slot does not have them, so they are asked for apart, and only
 * by a page that reaches so far.
 */
function behindSql(
  statement: Statement,
  matching: readonly string[],
  valued: readonly string[],
  stored: string,
): string {
  const found = "(SELECT count(*) FROM valued)";
  const isShort = `${found} < ${statement.perPage}`;
  const before = `greatest(0, ${offsetSql(statement)} - (${countSql(statement, valued)}))`;
  const limit = `LIMIT ${statement.perPage} - ${found} OFFSET CASE WHEN ${isShort} THEN ${before} END`;
  return placesSql(idsSql(statement, [...matching, `${stored} IS NULL`, isShort], NEWEST, limit));
}

/** What the database counts as it goes; and where all but some are asked for, those some are counted. */
function totalSql(statement: Statement, matching: readonly string[], plan: ListPlan, slots: Slots): string {
  const [only, ...others] = plan.conditions;
  const all = totalOf(statement.typeId);
  if (only === undefined) return all;
  if (only.kind !== "equals" || !only.negated || others.length > 0) return countSql(statement, matching);
  const { sql } = testOf({ ...only, negated: false }, slots, statement.values.place);
  return `SELECT all_of_them.total - excluded.total AS total
  FROM (${all}) AS all_of_them, (${countSql(statement, [sql])}) AS excluded`;
}

function countSql(statement: Statement, matching: readonly string[]): string {
  return `SELECT count(*) AS total FROM precast.entries AS e WHERE ${where(statement, matching)}`;
}

function idsSql(statement: Statement, matching: readonly string[], order: string, limit: string): string {
  return `SELECT e.id FROM precast.entries AS e WHERE ${where(statement, matching)}
    ORDER BY ${order} ${limit}`;
}

function where({ typeId }: Statement, matching: readonly string[]): string {
  const published = `e.content_type_id = ${typeId} AND e.status = 'published'`;
  return [published, ...matching].join("\n    AND ");
}
