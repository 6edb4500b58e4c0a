/** The frame of the queries of pages: a page is found as ids with places, and its rows are read whole; with the total. */
import { entryColumns } from "./column.ts";
import type { Query } from "./database/database.ts";
import type { SortKey } from "./order.ts";
import type { ListPlan, SearchPlan } from "./plan.ts";
import { collectValues, type Values } from "./query.ts";
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
export type Statement = {
  /** A literal: a plan that is kept does for this type, small or large. */
  readonly typeId: string;
  readonly perPage: number;
  readonly offset: bigint;
  readonly values: Values;
};

export function statementOf(appKey: string, plan: ListPlan | SearchPlan, slots: Slots): Statement {
  const values = collectValues(appKey, plan.type.slug, slots.typeId, slots.map);
  return { typeId: slots.typeId, perPage: plan.perPage, offset: offsetOf(plan), values };
}

/** The parts of a query that find the ids of a page, in the common table `page` with their places, and the total. */
export type Parts = { readonly page: string; readonly total: string };

/**
 * Rows of [type id, slots, total, id, data, rich, published_at, created_at, updated_at]. No row when the type is gone, one row
 * without an id when the page is empty; without a total when the slots are others.
 */
export function pageQuery({ typeId, values }: Statement, { page, total }: Parts, shown: Shown): Query {
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

/** What matches is found once where it has to be searched for, and is then counted and cut. `from` is FROM and WHERE. */
export function gatheredSql(statement: Statement, from: string, id: string, keys: readonly SortKey[]): Parts {
  const order = keys.map(({ direction }, index) => `key_${index} ${direction}`).join(", ");
  const page = `matched AS MATERIALIZED (
  SELECT ${id}, ${keys.map(({ value }, index) => `${value} AS key_${index}`).join(", ")}
  ${from}),
page AS (${placedSql(`SELECT id FROM matched ORDER BY ${order} ${limitSql(statement)}`)})`;
  return { page, total: "SELECT count(*) AS total FROM matched" };
}

/** Ids in an order, with their places in it. */
export function placedSql(ids: string): string {
  return `
  SELECT first.id, row_number() OVER () AS place FROM (
    ${ids}) AS first`;
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
