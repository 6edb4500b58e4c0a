/** The queries of pages: a list becomes the ids of a page and the total, by indexes wherever they serve. */
import { entryColumns } from "./column.ts";
import type { Query } from "./database/database.ts";
import { storedIn, testOf } from "./indexed.ts";
import { keysSql, NEWEST_FIRST, type SortKey, sortKeys } from "./order.ts";
import type { ListPlan, SearchPlan } from "./plan.ts";
import { collectValues, type Values } from "./query.ts";
import { showsRichText } from "./shown.ts";
import type { Slots } from "./slots.ts";

/** The published type `$2` of the app `$1`, and whether its slots are the ones that are meant. */
const KIND_WITH_SLOTS = `kind AS MATERIALIZED (
  SELECT type.id, slots.map::text AS slots, (type.id, slots.map) = ($3::int, $4::jsonb) AS fits
  FROM precast.content_types AS type
  JOIN precast.slots ON slots.content_type_id = type.id
  JOIN precast.apps AS app ON app.id = type.app_id
  WHERE app.key = $1 AND type.slug = $2 AND type.published)`;
const PUBLISHED_IN_SLOTS = "e.content_type_id = $3::int AND e.status = 'published' AND (SELECT fits FROM kind)";

/**
 * A page and the total: rows of [type id, slots, total, id, data, rich, published_at, created_at, updated_at]. No row when
 * the type is gone, one row without an id when the page is empty; without a total when the slots are others.
 */
export function listQuery(appKey: string, plan: ListPlan, slots: Slots): Query {
  const values = collectValues(appKey, plan.type.slug, slots.typeId, slots.map);
  const tests = plan.conditions.map((condition) => testOf(condition, slots, values.place));
  const matching = tests.map(({ sql }) => sql);
  const stored = tests.every(({ isServed }) => isServed) ? storedIn(plan.sort.column, slots) : null;
  const parts =
    stored === null
      ? gatheredSql(matching, sortKeys(plan.sort), plan)
      : { page: cutSql(matching, plan, stored), total: totalSql(plan, matching, slots, values) };
  return pageQuery(values, parts, plan);
}

/** The parts of a query that find the ids of a page, in the common table `page` with their places, and the total. */
type Parts = { readonly page: string; readonly total: string };

/** Rows are read whole for the page alone. */
export function pageQuery(values: Values, { page, total }: Parts, plan: ListPlan | SearchPlan): Query {
  const text = `WITH ${KIND_WITH_SLOTS},
${page}
SELECT kind.id::text, kind.slots, counted.total::text, shown.id, shown.data, shown.rich, shown.published_at, shown.created_at, shown.updated_at
FROM kind
LEFT JOIN (${total}) AS counted ON kind.fits
LEFT JOIN (
  SELECT page.place, ${entryColumns(showsRichText(plan.shown))}
  FROM page JOIN precast.entries AS e ON e.content_type_id = $3::int AND e.id = page.id) AS shown ON true
ORDER BY shown.place`;
  return { text, values: values.all };
}

function gatheredSql(matching: readonly string[], keys: readonly SortKey[], plan: ListPlan): Parts {
  return cutFromSql(`FROM precast.entries AS e\n  WHERE ${where(matching)}`, "e.id", keys, plan);
}

/** What matches is found once where it has to be searched for, and is then counted and cut. */
export function cutFromSql(from: string, id: string, keys: readonly SortKey[], pages: Pages): Parts {
  const order = keys.map(({ direction }, index) => `key_${index} ${direction}`).join(", ");
  const page = `matched AS MATERIALIZED (
  SELECT ${id}, ${keys.map(({ value }, index) => `${value} AS key_${index}`).join(", ")}
  ${from}),
page AS (${placedSql(`SELECT id FROM matched ORDER BY ${order} ${limitSql(pages)}`)})`;
  return { page, total: "SELECT count(*) AS total FROM matched" };
}

function where(matching: readonly string[]): string {
  return [PUBLISHED_IN_SLOTS, ...matching].join("\n    AND ");
}

/** Ids in an order, with their places in it. */
function placedSql(ids: string): string {
  return `
  SELECT first.id, row_number() OVER () AS place FROM (
    ${ids}) AS first`;
}

function idsSql(matching: readonly string[], order: string, limit: string): string {
  return `SELECT e.id FROM precast.entries AS e WHERE ${where(matching)}
    ORDER BY ${order} ${limit}`;
}

const NEWEST = keysSql(NEWEST_FIRST);

/**
 * A page that an index gives in its order. Entries without a value come behind all others: the index of a slot does not
 * have them, so they are asked for apart, and only by a page that reaches so far.
 */
function cutSql(matching: readonly string[], plan: ListPlan, stored: string): string {
  const { sort, perPage } = plan;
  if (sort.column.name === "published_at") return `page AS (${placedSql(idsSql(matching, NEWEST, limitSql(plan)))})`;
  const valued = [...matching, `${stored} IS NOT NULL`];
  const found = "(SELECT count(*) FROM valued)";
  const valueless = [...matching, `${stored} IS NULL`, `${found} < ${perPage}`];
  const rest = `LIMIT ${perPage} - ${found}
    OFFSET CASE WHEN ${found} < ${perPage} THEN greatest(0, ${offsetOf(plan)} - (${countSql(valued)})) END`;
  const order = `${stored} ${sort.descending ? "DESC" : "ASC"}, ${NEWEST}`;
  return `valued AS MATERIALIZED (${placedSql(idsSql(valued, order, limitSql(plan)))}),
page AS (
  SELECT id, place FROM valued
  UNION ALL
  SELECT id, ${perPage} + place FROM (${placedSql(idsSql(valueless, NEWEST, rest))}) AS behind)`;
}

/** Where all but some are asked for, those some are counted, and what there is without them. */
function totalSql(plan: ListPlan, matching: readonly string[], slots: Slots, { place }: Values): string {
  const [only, ...others] = plan.conditions;
  if (only?.kind !== "equals" || !only.negated || others.length > 0) return countSql(matching);
  const { sql } = testOf({ ...only, negated: false }, slots, place);
  return `SELECT all_of_them.total - excluded.total AS total
  FROM (${countSql([])}) AS all_of_them, (${countSql([sql])}) AS excluded`;
}

function countSql(matching: readonly string[]): string {
  return `SELECT count(*) AS total FROM precast.entries AS e WHERE ${where(matching)}`;
}

function limitSql(pages: Pages): string {
  return `LIMIT ${pages.perPage} OFFSET ${offsetOf(pages)}`;
}

type Pages = Pick<ListPlan, "page" | "perPage">;

const MAX_OFFSET = 2n ** 63n - 1n;

function offsetOf({ page, perPage }: Pages): bigint {
  const offset = (page - 1n) * BigInt(perPage);
  return offset > MAX_OFFSET ? MAX_OFFSET : offset;
}
