/** The frame of the queries of pages: the entries of a page in their order, and the total. */
import type { Query } from "../database/database.ts";
import type { ListPlan, SearchPlan } from "../plan.ts";
import { showsRichText } from "../shown.ts";
import { entryColumns } from "./column.ts";
import { isFindable } from "./indexed.ts";
import { keyColumns, type SortKey } from "./order.ts";
import { collectValues, editionOf, type Values } from "./query.ts";
import type { Slots } from "./slots.ts";

/** What a statement is written for: its type, its pages, its values, and what it shows of an entry. */
export type Statement = {
  /** A literal: a plan that is kept does for this type, small or large. */
  readonly typeId: string;
  readonly perPage: number;
  readonly offset: bigint;
  readonly values: Values;
  readonly columns: string;
};

export function statementOf(appKey: string, plan: ListPlan | SearchPlan, slots: Slots): Statement {
  const values = collectValues(appKey, plan.type.slug, slots.map);
  const columns = entryColumns(showsRichText(plan.shown));
  return { typeId: slots.typeId, perPage: plan.perPage, offset: offsetOf(plan), values, columns };
}

/** The parts of a query of a page. */
export type Parts = {
  /** Common tables, if any. */
  readonly tables: readonly string[];
  /** The page's entries as the statement's columns, and what `order` names beside. */
  readonly page: string;
  readonly order: string;
  readonly total: string;
  /** SQL that must be true, or else the query is not for this type any more. */
  readonly premise?: string;
};

/**
 * Rows of [standing, id, data, rich, published_at, created_at, updated_at]; one row without an id when the page is empty. The
 * standing is the total and the edition, with a blank between. No row when the type is gone, has other slots by now, or is not as
 * the premise says.
 */
export function pageQuery({ typeId, values }: Statement, { tables, page, order, total, premise }: Parts): Query {
  const text = `${tables.length === 0 ? "" : `WITH ${tables.join(",\n")}\n`}SELECT
  counted.total || ' ' || ${editionOf(typeId)}, page.id, page.data, page.rich, page.published_at, page.created_at, page.updated_at
FROM precast.content_types AS type
JOIN precast.apps AS app ON app.id = type.app_id AND app.key = $1
JOIN precast.slots ON slots.content_type_id = ${typeId} AND slots.map = $3::jsonb
CROSS JOIN (${total}) AS counted
LEFT JOIN (${page}) AS page ON true
WHERE type.id = ${typeId} AND type.slug = $2 AND type.published${premise === undefined ? "" : ` AND ${premise}`}
ORDER BY ${order}`;
  return { text, values: values.all };
}

/**
 * Says of a query whether it is worth to be kept: not where the best plan depends on what stands in the texts that are looked for.
 * `isForAny` says that one plan does for all values.
 */
export function recurring(query: Query, texts: readonly string[], isForAny: boolean): Query {
  return texts.every(isFindable) ? { ...query, recurs: isForAny ? "any" : "some" } : query;
}

/**
 * Entries whose ids are found first, with their places: rows are read whole for the page alone. A page is no longer than its
 * limit, which the planner does not know where the limit is reckoned: told nothing, it would read the whole table.
 */
export function placedSql({ typeId, columns, perPage }: Statement, ids: string): Pick<Parts, "page" | "order"> {
  const page = `
  SELECT found.place, ${columns}
  FROM (SELECT * FROM (${ids}) AS ids LIMIT ${perPage}) AS found
  JOIN precast.entries AS e ON e.content_type_id = ${typeId} AND e.id = found.id`;
  return { page, order: "page.place" };
}

/** Ids in an order, with their places in it. */
export function placesSql(ids: string): string {
  return `
  SELECT first.id, row_number() OVER () AS place FROM (
    ${ids}) AS first`;
}

/** What matches is found once where it has to be searched for, and is then counted and cut. `from` is FROM and WHERE. */
export function gatheredSql(statement: Statement, from: string, id: string, keys: readonly SortKey[]): Parts {
  const { columns, order } = keyColumns(keys);
  const matched = `matched AS MATERIALIZED (
  SELECT ${id}, ${columns}
  ${from})`;
  const ids = placesSql(`SELECT id FROM matched ORDER BY ${order} ${limitSql(statement)}`);
  return { tables: [matched], ...placedSql(statement, ids), total: "SELECT count(*) AS total FROM matched" };
}

/** The first page is a text of its own, the others share one. */
export function limitSql(statement: Statement): string {
  const limit = `LIMIT ${statement.perPage}`;
  return statement.offset === 0n ? limit : `${limit} OFFSET ${offsetSql(statement)}`;
}

export function offsetSql({ offset, values }: Statement): string {
  return offset === 0n ? "0" : `${values.place(String(offset))}::bigint`;
}

const MAX_OFFSET = 2n ** 63n - 1n;

function offsetOf({ page, perPage }: Pick<ListPlan, "page" | "perPage">): bigint {
  const offset = (page - 1n) * BigInt(perPage);
  return offset > MAX_OFFSET ? MAX_OFFSET : offset;
}
