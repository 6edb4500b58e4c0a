/** The queries of pages: a list or a search becomes the ids of a page and the total, by indexes wherever they serve. */
import { entryColumns } from "./column.ts";
import type { Query } from "./database/database.ts";
import { isNegated, storedIn, testOf } from "./indexed.ts";
import { keysSql, NEWEST_FIRST, type SortKey, sortKeys } from "./order.ts";
import type { ListPlan, SearchPlan } from "./plan.ts";
import { collectValues, totalOf, type Values } from "./query.ts";
import { type Shown, showsRichText } from "./shown.ts";
import type { Slots } from "./slots.ts";

/** The published type `$2` of the app `$1`, and whether its slots are the ones that are meant. */
const KIND_WITH_SLOTS = `kind AS MATERIALIZED (
  SELECT type.id, slots.map::text AS slots, (type.id, slots.map) = ($3::int, $4::jsonb) AS fits
  FROM precast.content_types AS type
  JOIN precast.slots ON slots.content_type_id = type.id
  JOIN precast.apps AS app ON app.id = type.app_id
  WHERE app.key = $1 AND type.slug = $2 AND type.published)`;

/** What a statement is written for: its type, its pages and its values. */
type Statement = {
  /** A literal: a plan that is kept does for this type, small or large. */
  readonly typeId: string;
  readonly perPage: number;
  readonly offset: bigint;
  readonly values: Values;
};

function statementOf(appKey: string, plan: ListPlan | SearchPlan, slots: Slots): Statement {
  const values = collectValues(appKey, plan.type.slug, slots.typeId, slots.map);
  return { typeId: slots.typeId, perPage: plan.perPage, offset: offsetOf(plan), values };
}

/**
 * A page and the total: rows of [type id, slots, total, id, data, rich, published_at, created_at, updated_at]. No row when
 * the type is gone, one row without an id when the page is empty; without a total when the slots are others.
 */
export function listQuery(appKey: string, plan: ListPlan, slots: Slots): Query {
  const statement = statementOf(appKey, plan, slots);
  const tests = plan.conditions.map((condition) => testOf(condition, slots, statement.values.place));
  const matching = tests.map(({ sql }) => sql);
  const stored = tests.every(({ isServed }) => isServed) ? storedIn(plan.sort.column, slots) : null;
  const parts =
    stored === null
      ? gatheredSql(statement, matching, sortKeys(plan.sort))
      : { page: cutSql(statement, matching, plan, stored), total: totalSql(statement, matching, plan, slots) };
  // What is looked for in a text decides how it is found.
  const recurs = plan.conditions.every(({ kind }) => kind !== "match");
  return { ...pageQuery(statement, parts, plan.shown), recurs };
}

/** As listQuery. Full-word entries come first, then those in which the words occur more often. */
export function searchQuery(appKey: string, plan: SearchPlan, slots: Slots): Query {
  const statement = statementOf(appKey, plan, slots);
  const { place } = statement.values;
  // Under the collation of the column: under another one its index is of no use.
  const words = plan.words.map((word) => `(lower(${place(word)}::text COLLATE "und-x-icu") COLLATE "default")`);
  const found = words.length === 0 ? ["false"] : words.map((word) => `e.words LIKE '%' || ${word} || '%'`);
  const tests = plan.conditions.map((condition) => testOf(condition, slots, place).sql);
  const keys = plan.sort === null ? relevanceKeys(words) : sortKeys(plan.sort);
  const parts = gatheredSql(statement, [...found, ...tests], keys, plan.sort === null ? UNPACKED : "");
  return pageQuery(statement, parts, plan.shown);
}

/** Long words are compressed, and each look at them would unpack them anew. */
const UNPACKED = " CROSS JOIN LATERAL (SELECT e.words || '' AS words OFFSET 0) AS unpacked";

/** The parts of a query that find the ids of a page, in the common table `page` with their places, and the total. */
type Parts = { readonly page: string; readonly total: string };

/** Rows are read whole for the page alone. */
function pageQuery({ typeId, values }: Statement, { page, total }: Parts, shown: Shown): Query {
  const text = `WITH ${KIND_WITH_SLOTS},
${page}
SELECT kind.id::text, kind.slots, counted.total::text, shown.id, shown.data, shown.rich, shown.published_at, shown.created_at, shown.updated_at
FROM kind
LEFT JOIN (${total}) AS counted ON kind.fits
LEFT JOIN (
  SELECT page.place, ${entryColumns(showsRichText(shown))}
  FROM page JOIN precast.entries AS e ON e.content_type_id = ${typeId} AND e.id = page.id) AS shown ON kind.fits
ORDER BY shown.place`;
  return { text, values: values.all };
}

/** What matches is found once where it has to be searched for, and is then counted and cut. */
function gatheredSql(statement: Statement, matching: readonly string[], keys: readonly SortKey[], beside = ""): Parts {
  const order = keys.map(({ direction }, index) => `key_${index} ${direction}`).join(", ");
  const page = `matched AS MATERIALIZED (
  SELECT e.id, ${keys.map(({ value }, index) => `${value} AS key_${index}`).join(", ")}
  FROM precast.entries AS e${beside}
  WHERE ${where(statement, matching)}),
page AS (${placedSql(`SELECT id FROM matched ORDER BY ${order} ${limitSql(statement)}`)})`;
  return { page, total: "SELECT count(*) AS total FROM matched" };
}

function where({ typeId }: Statement, matching: readonly string[]): string {
  const published = `e.content_type_id = ${typeId} AND e.status = 'published'`;
  return [published, ...matching].join("\n    AND ");
}

/** Ids in an order, with their places in it. */
function placedSql(ids: string): string {
  return `
  SELECT first.id, row_number() OVER () AS place FROM (
    ${ids}) AS first`;
}

function idsSql(statement: Statement, matching: readonly string[], order: string, limit: string): string {
  return `SELECT e.id FROM precast.entries AS e WHERE ${where(statement, matching)}
    ORDER BY ${order} ${limit}`;
}

const NEWEST = keysSql(NEWEST_FIRST);

/** A page that an index gives in its order. */
function cutSql(statement: Statement, matching: readonly string[], plan: ListPlan, stored: string): string {
  const { sort, conditions } = plan;
  const key = keysSql([{ value: stored, direction: sort.descending ? "DESC" : "ASC" }]);
  const order = sort.column.name === "published_at" ? NEWEST : `${key}, ${NEWEST}`;
  const pageOf = (tests: readonly string[]) => placedSql(idsSql(statement, tests, order, limitSql(statement)));
  if (sort.column.type === "timestamp") return `page AS (${pageOf(matching)})`;
  const valued = [...matching, `${stored} IS NOT NULL`];
  // What a filter lets pass has a value.
  if (conditions.some((condition) => condition.column.name === sort.column.name && !isNegated(condition)))
    return `page AS (${pageOf(valued)})`;
  return `valued AS MATERIALIZED (${pageOf(valued)}),
page AS (
  SELECT id, place FROM valued
  UNION ALL
  SELECT id, ${statement.perPage} + place FROM (${behindSql(statement, matching, valued, stored)}) AS behind)`;
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
  return placedSql(idsSql(statement, [...matching, `${stored} IS NULL`, isShort], NEWEST, limit));
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

/** The first page is a text of its own, the others share one. */
function limitSql(statement: Statement): string {
  const limit = `LIMIT ${statement.perPage}`;
  return statement.offset === 0n ? limit : `${limit} OFFSET ${offsetSql(statement)}`;
}

function offsetSql({ offset, values }: Statement): string {
  return offset === 0n ? "0" : `${values.place(String(offset))}::bigint`;
}

const MAX_OFFSET = 2n ** 63n - 1n;

function offsetOf({ page, perPage }: Pick<ListPlan, "page" | "perPage">): bigint {
  const offset = (page - 1n) * BigInt(perPage);
  return offset > MAX_OFFSET ? MAX_OFFSET : offset;
}

function relevanceKeys(words: readonly string[]): readonly SortKey[] {
  if (words.length === 0) return NEWEST_FIRST;
  const complete = words.map((word) => `unpacked.words LIKE '% ' || ${word} || ' %'`).join(" AND ");
  const occurrences = (wanted: string) =>
    `(octet_length(unpacked.words) - octet_length(replace(unpacked.words, ${wanted}, ''))) / octet_length(${wanted})`;
  const full = words.map((word) => occurrences(`(' ' || ${word} || ' ')`)).join(" + ");
  const partial = words.map((word) => occurrences(word)).join(" + ");
  return [
    { value: `(${complete})`, direction: "DESC" },
    { value: `CASE WHEN ${complete} THEN ${full} ELSE ${partial} END`, direction: "DESC" },
    ...NEWEST_FIRST,
  ];
}
