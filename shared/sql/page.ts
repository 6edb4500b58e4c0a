/**
 * Builds what the queries of lists and searches have in common: the entries of a page in their order, and the total.
 */
import { type Sort, showsRichText } from "../api/columns.ts";
import type { ListPlan, SearchPlan } from "../api/plan.ts";
import { entryColumns, isSmallSql, orderKeySql, type Slots } from "./columns.ts";
import { isTrigramServed } from "./conditions.ts";
import { contentVersionSql } from "./counts.ts";
import { collectValues, type Query, type Values } from "./query.ts";

/**
 * What a statement is written for: its content type, its page, its values, and the columns that it selects of an entry.
 */
export type Statement = {
  /** Written into the SQL as a literal, so that a prepared statement and its plan belong to this one type. */
  readonly typeId: string;
  readonly perPage: number;
  readonly offset: bigint;
  readonly values: Values;
  readonly columns: string;
  /** Whether the statement relies on the type being small (counts.ts). */
  readonly isSmall: boolean;
};

export function openStatement(appKey: string, plan: ListPlan | SearchPlan, slots: Slots): Statement {
  const values = collectValues(appKey, plan.type.slug, slots.map);
  const columns = entryColumns(showsRichText(plan.shown));
  const { typeId, isSmall } = slots;
  return { typeId, perPage: plan.perPage, offset: findOffset(plan), values, columns, isSmall };
}

/** The SQL parts from which pageQuery builds a query. */
export type Parts = {
  /** Common table expressions (WITH), if any. */
  readonly tables: readonly string[];
  /** SELECT of the page's entries: the columns of the statement, and those that `order` names. */
  readonly page: string;
  readonly order: string;
  readonly total: string;
};

/** Bytes of the longest page that is sent. node-postgres ends the process when it gets a text that is too long for V8. */
const MAX_PAGE_BYTES = 500_000_000;

/**
 * Builds a query with one row of [total, content version, page]. The page is one text, which takes less time to send and
 * to read than a row for each entry: readEntryLines reads it. It is null when it holds no entry, and empty when it is too
 * long. No row when the type does not exist or is not published, when its slots have changed, or when it
 * is no longer small.
 */
export function pageQuery({ typeId, values, isSmall }: Statement, { tables, page, order, total }: Parts): Query {
  const entry = "page.id, page.data, coalesce(page.rich, ''), page.published_at, page.created_at, page.updated_at";
  const text = `${tables.length === 0 ? "" : `WITH ${tables.join(",\n")}\n`}SELECT counted.total::text, ${contentVersionSql(typeId)}, (
  SELECT CASE WHEN octet_length(lines) > ${MAX_PAGE_BYTES} THEN '' ELSE lines END FROM (
    SELECT string_agg(concat_ws(E'\\t', ${entry}), E'\\n' ORDER BY ${order}) AS lines FROM (${page}) AS page) AS joined)
FROM precast.content_types AS type
JOIN precast.apps AS app ON app.id = type.app_id AND app.key = $1
JOIN precast.slots ON slots.content_type_id = ${typeId} AND slots.map = $3::jsonb
CROSS JOIN (${total}) AS counted
WHERE type.id = ${typeId} AND type.slug = $2 AND type.published${isSmall ? ` AND ${isSmallSql(typeId)}` : ""}`;
  return { text, values: values.all };
}

/**
 * Marks a query as worth preparing, unless its best plan depends on the search texts themselves (isTrigramServed).
 * `isGeneric` says that one plan fits all values.
 */
export function recurring(query: Query, texts: readonly string[], isGeneric: boolean): Query {
  return texts.every(isTrigramServed) ? { ...query, recurringPlan: isGeneric ? "generic" : "auto" } : query;
}

/**
 * Builds a page from `ids`, SQL of the ids of its entries and their places, so that whole rows are read for these
 * entries only. The LIMIT repeats the page size for the planner: where `ids` computes its limit, the planner does not
 * know how few ids there are and would read the whole table.
 */
export function placedSql({ typeId, columns, perPage }: Statement, ids: string): Pick<Parts, "page" | "order"> {
  const page = `
  SELECT found.place, ${columns}
  FROM (SELECT *, ${typeId} AS type_id FROM (${ids}) AS ids LIMIT ${perPage}) AS found
  ${lookupSql("e.content_type_id = found.type_id AND e.id = found.id")}`;
  return { page, order: "page.place" };
}

/**
 * Joins entries by looking each up by its key. The key must not hold the type's id as a literal: while the statistics
 * do not know the type, the planner expects one entry in it, and would as soon read all of them for each lookup.
 */
export function lookupSql(key: string): string {
  return `CROSS JOIN LATERAL (SELECT * FROM precast.entries AS e WHERE ${key} OFFSET 0) AS e`;
}

/** Numbers the ids that `ids` selects in an order: SQL of rows of `id` and `place`, from 1. */
export function placesSql(ids: string): string {
  return `
  SELECT first.id, row_number() OVER () AS place FROM (
    ${ids}) AS first`;
}

/**
 * Builds the parts of a query that no index can answer in order: it finds all matches once, then counts them and takes
 * the page. Each of `ways` is SQL of FROM and WHERE that finds some of them, `id` of the entry's id.
 */
export function gatheredSql(
  statement: Statement,
  ways: readonly string[],
  id: string,
  keys: readonly SortKey[],
): Parts {
  const { columns, order } = keyColumns(keys);
  const matched = `matched AS MATERIALIZED (
  ${ways.map((from) => `SELECT ${id}, ${columns}\n  ${from}`).join("\n  UNION ALL\n  ")})`;
  const ids = placesSql(`SELECT id FROM matched ORDER BY ${order} ${limitSql(statement)}`);
  return { tables: [matched], ...placedSql(statement, ids), total: "SELECT count(*) AS total FROM matched" };
}

/** LIMIT and OFFSET of the page. The first page has a statement text of its own; all other pages share one. */
export function limitSql(statement: Statement): string {
  const limit = `LIMIT ${statement.perPage}`;
  return statement.offset === 0n ? limit : `${limit} OFFSET ${offsetSql(statement)}`;
}

export function offsetSql({ offset, values }: Statement): string {
  return offset === 0n ? "0" : `${values.bind(String(offset))}::bigint`;
}

const MAX_OFFSET = 2n ** 63n - 1n;

/** How many entries come before the page; no more than PostgreSQL can count. */
function findOffset({ page, perPage }: Pick<ListPlan, "page" | "perPage">): bigint {
  const offset = (page - 1n) * BigInt(perPage);
  return offset > MAX_OFFSET ? MAX_OFFSET : offset;
}

// Builds the SQL of the entries of a list: the published ones of its type that pass the tests of its conditions.

/** FROM and WHERE of the matching entries `e`. */
export function fromSql({ typeId }: Pick<Statement, "typeId">, tests: readonly string[]): string {
  const published = `e.content_type_id = ${typeId} AND e.status = 'published'`;
  return `FROM precast.entries AS e WHERE ${[published, ...tests].join("\n    AND ")}`;
}

/** SQL of one row `total`, found by counting the matching entries. */
export function countSql(statement: Pick<Statement, "typeId">, tests: readonly string[]): string {
  return `SELECT count(*) AS total ${fromSql(statement, tests)}`;
}

// Builds the ORDER BY of lists; tie-breakers make every order total. Source: shared/contract.md section 4.

export type SortKey = {
  readonly value: string;
  readonly direction: "ASC" | "DESC" | "ASC NULLS LAST" | "DESC NULLS LAST";
};

const BY_ID: SortKey = { value: "e.id", direction: "ASC" };
export const NEWEST_FIRST: readonly SortKey[] = [{ value: "e.published_at", direction: "DESC" }, BY_ID];

/**
 * Sort keys of a list. Entries without a value come last in both directions; ties sort newest first, then by id. `value`
 * is SQL of the sort column's value.
 */
export function sortKeys(sort: Sort, value = orderKeySql(sort.column)): readonly SortKey[] {
  if (sort.column.name === "published_at") return NEWEST_FIRST;
  return [{ value, direction: sort.descending ? "DESC NULLS LAST" : "ASC NULLS LAST" }, ...NEWEST_FIRST];
}

/** The same, for entries that have a value in the sort column: `stored` is SQL of the entries column that holds it. */
export function storedKeys({ column, descending }: Sort, stored: string): readonly SortKey[] {
  if (column.name === "published_at") return NEWEST_FIRST;
  return [{ value: stored, direction: descending ? "DESC" : "ASC" }, ...NEWEST_FIRST];
}

/** The list of expressions after ORDER BY. */
export function orderSql(sort: Sort): string {
  return keysSql(sortKeys(sort));
}

export function keysSql(keys: readonly SortKey[]): string {
  return keys.map(({ value, direction }) => `${value} ${direction}`).join(", ");
}

/** The keys as columns of a subquery's select list, and the ORDER BY list for the query that reads the subquery. */
export function keyColumns(keys: readonly SortKey[]): { readonly columns: string; readonly order: string } {
  return {
    columns: keys.map(({ value }, index) => `${value} AS key_${index}`).join(", "),
    order: keys.map(({ direction }, index) => `key_${index} ${direction}`).join(", "),
  };
}

/** The keys in reverse order. Their values must never be NULL. */
export function reversed(keys: readonly SortKey[]): readonly SortKey[] {
  return keys.map(({ value, direction }) => ({ value, direction: direction.startsWith("ASC") ? "DESC" : "ASC" }));
}
