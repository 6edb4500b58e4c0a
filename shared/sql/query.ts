/**
 * Builds the queries for single entries, counts, slots and editions. Every query names its app, so none can see the
 * data of another app. The queries of pages are in page-query.ts, those of a build in tree-query.ts.
 */
import type { Field } from "../catalog.ts";
import type { Query, Value } from "../database/database.ts";
import type { EntryPlan } from "../plan.ts";
import { entryColumns, noStoredColumns, storedColumns } from "./column.ts";
import type { Bind } from "./where.ts";

/** The values of a statement; `bind` adds one and returns its placeholder. */
export type Values = { readonly all: Value[]; readonly bind: Bind };

export function collectValues(...first: Value[]): Values {
  const all = [...first];
  return { all, bind: (value) => `$${all.push(value)}` };
}

/** The part of an entry plan that must be equal for one query to answer several plans. */
export type EntriesAsked = Pick<EntryPlan, "type" | "populate">;

/** The published types of the app `$1`. */
const TYPES_OF_APP = `precast.apps AS app JOIN precast.content_types AS type ON type.app_id = app.id AND type.published
  WHERE app.key = $1`;

/**
 * Finds entries by UUID, and the related entries that `populate` asks for: rows of [place, field, id, data, rich, …,
 * edition], all from one snapshot. The place is the 1-based position in `ids`. An entry has the field '' and comes
 * before its related entries. An extra first row has the place 0 and is the only one with an edition, which covers all
 * types involved. No rows when the type does not exist or is not published.
 */
export function entriesQuery(appKey: string, { type, populate }: EntriesAsked, ids: readonly string[]): Query {
  const values = collectValues(appKey, type.slug, ids, typesOf({ type, populate }));
  const related = populate.map((field, index) => relatedSql(field, index + 1, values));
  const text = `WITH types AS MATERIALIZED (
  SELECT type.id, type.slug FROM ${TYPES_OF_APP} AND type.slug = ANY ($4::text[])),
main AS MATERIALIZED (
  SELECT asked.place AS asked, ${storedColumns()} FROM unnest($3::uuid[]) WITH ORDINALITY AS asked(id, place)
  JOIN precast.entries AS e ON e.id = asked.id AND ${publishedIn("$2")})
SELECT asked::text, field, ${entryColumns(true)}, edition FROM (
  SELECT 0 AS asked, '' AS field, 0 AS step, 0 AS place, ${noStoredColumns()}, (SELECT ${EDITION} FROM types AS type) AS edition
  FROM types WHERE types.slug = $2
  UNION ALL
  SELECT asked, '', 0, 0, ${storedColumns()}, NULL FROM main AS e${related.join("")}
) AS e ORDER BY asked, step, place`;
  return { text, values: values.all, recurringPlan: "generic" };
}

/** The slugs of the types whose entries the answer may contain. */
export function typesOf({ type, populate }: EntriesAsked): readonly string[] {
  return [type.slug, ...populate.map(({ target }) => target ?? "")];
}

function relatedSql(field: Field, step: number, values: Values): string {
  const references = field.multiple
    ? elementsOf(`main.data -> '${field.name}'`)
    : `(VALUES (main.data -> '${field.name}', 1))`;
  return `
  UNION ALL
  SELECT main.asked, '${field.name}', ${step}, reference.place, ${storedColumns()}, NULL
  FROM main CROSS JOIN LATERAL ${references} AS reference(id, place)
  CROSS JOIN LATERAL (
    SELECT * FROM precast.entries AS e WHERE ${publishedIn(values.bind(field.target))}
      AND e.id = CASE WHEN precast.is_uuid(reference.id #>> '{}') THEN (reference.id #>> '{}')::uuid END
    LIMIT 1) AS e`;
}

function publishedIn(slug: string): string {
  return `e.content_type_id = (SELECT id FROM types WHERE types.slug = ${slug}) AND e.status = 'published'`;
}

/** The elements of a `multiple` relation. precast.elements would take longer here than the rest of the query. */
function elementsOf(value: string): string {
  return `jsonb_array_elements(CASE WHEN precast.holds_elements('relation', ${value}) THEN ${value} ELSE '[]' END) WITH ORDINALITY`;
}

/** The slots of a published type: one row of [type id, slot map, slots counted in pairs, is it small], or none. */
export function slotsQuery(appKey: string, slug: string): Query {
  const text = `SELECT type.id::text, slots.map::text, array_to_json(slots.paired)::text, (${isSmallSql("type.id")})::text
FROM precast.content_types AS type
JOIN precast.slots ON slots.content_type_id = type.id
JOIN precast.apps AS app ON app.id = type.app_id WHERE app.key = $1 AND type.slug = $2 AND type.published`;
  return { text, values: [appKey, slug] };
}

/** SQL of one row `total`: the number of published entries of a type, from the kept counts (schema/0015_counts.sql). */
export function totalOf(typeId: string): string {
  return `SELECT coalesce(sum(change), 0) AS total FROM precast.entry_counts WHERE content_type_id = ${typeId}`;
}

/**
 * Largest number of published entries of a small type: running any plan that uses an index of the type takes less time
 * than planning for the values.
 */
const MAX_SMALL_ENTRIES = 1_000;

/** SQL of a boolean: whether the type has at most MAX_SMALL_ENTRIES published entries. */
export function isSmallSql(typeId: string): string {
  return `(${totalOf(typeId)}) <= ${MAX_SMALL_ENTRIES}`;
}

/**
 * The edition of the published types among `slugs`: one row with a text that stays the same only while the entries of
 * all of them do (schema/0015_counts.sql). Queries of entries also return it, for the snapshot in which they see them.
 */
export function editionQuery(appKey: string, slugs: readonly string[]): Query {
  const text = `SELECT ${EDITION} FROM ${TYPES_OF_APP} AND type.slug = ANY ($2::text[])`;
  return { text, values: [appKey, slugs], recurringPlan: "generic" };
}

/** SQL of the edition of the row `type`. It contains the slug, because two types may swap slugs, and never a space. */
export function editionOf(typeId: string): string {
  return `(type.slug || ':' || ${typeId} || ':' || (
    SELECT coalesce(sum(mark), 0) FROM precast.entry_counts WHERE content_type_id = ${typeId}))`;
}

/** SQL aggregate: the editions of the selected types, joined by spaces. */
const EDITION = `string_agg(${editionOf("type.id")}, ' ' ORDER BY type.id)`;

/** The number of published entries of each published type: rows of [slug, count]. */
export function entryCountsQuery(appKey: string): Query {
  const text = `SELECT type.slug, (${totalOf("type.id")})::text
FROM ${TYPES_OF_APP}`;
  return { text, values: [appKey], recurringPlan: "generic" };
}
