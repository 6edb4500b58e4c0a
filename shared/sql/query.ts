/**
 * Turns plans into SQL: an entry, counts and slots. Every query names its app, so none can see another's. Pages are in
 * page-query.ts, the builder's queries in tree-query.ts.
 */
import type { Field } from "../catalog.ts";
import type { Query, Value } from "../database/database.ts";
import type { EntryPlan } from "../plan.ts";
import { entryColumns, noEntryColumns } from "./column.ts";
import type { Place } from "./where.ts";

/** Collects the values of a statement and gives their places. */
export type Values = { readonly all: Value[]; readonly place: Place };

export function collectValues(...first: Value[]): Values {
  const all = [...first];
  return { all, place: (value) => `$${all.push(value)}` };
}

/** What plans have in common that one query can answer. */
export type EntriesAsked = Pick<EntryPlan, "type" | "populate">;

/** The published types of the app `$1`. */
const TYPES_OF_APP = `precast.apps AS app JOIN precast.content_types AS type ON type.app_id = app.id AND type.published
  WHERE app.key = $1`;

/**
 * Entries by their UUIDs and the entries that they name: rows of [place, field, id, data, rich, …, edition], the places counted
 * from 1. The first row has the place 0 and, alone, the edition of all types; an entry comes before those it names, with the field ''.
 * No row when the type is gone. All is of one moment.
 */
export function entriesQuery(appKey: string, { type, populate }: EntriesAsked, ids: readonly string[]): Query {
  const values = collectValues(appKey, type.slug, ids, typesOf({ type, populate }));
  const related = populate.map((field, index) => relatedSql(field, index + 1, values));
  const text = `WITH types AS MATERIALIZED (
  SELECT type.id, type.slug FROM ${TYPES_OF_APP} AND type.slug = ANY ($4::text[])),
main AS MATERIALIZED (
  SELECT asked.place AS asked, e.* FROM unnest($3::uuid[]) WITH ORDINALITY AS asked(id, place)
  JOIN precast.entries AS e ON e.id = asked.id AND ${publishedIn("$2")})
SELECT asked::text, field, id, data, rich, published_at, created_at, updated_at, edition FROM (
  SELECT 0 AS asked, '' AS field, 0 AS step, 0 AS place, ${noEntryColumns()}, (SELECT ${EDITION} FROM types AS type) AS edition
  FROM types WHERE types.slug = $2
  UNION ALL
  SELECT asked, '', 0, 0, ${entryColumns(true)}, NULL FROM main AS e${related.join("")}
) AS found ORDER BY asked, step, place`;
  return { text, values: values.all, recurs: "any" };
}

/** The slugs of the types whose entries are in the answer. */
export function typesOf({ type, populate }: EntriesAsked): readonly string[] {
  return [type.slug, ...populate.map(({ target }) => target ?? "")];
}

function relatedSql(field: Field, step: number, values: Values): string {
  const references = field.multiple
    ? elementsOf(`main.data -> '${field.name}'`)
    : `(VALUES (main.data -> '${field.name}', 1))`;
  return `
  UNION ALL
  SELECT main.asked, '${field.name}', ${step}, reference.place, ${entryColumns(true)}, NULL
  FROM main CROSS JOIN LATERAL ${references} AS reference(id, place)
  CROSS JOIN LATERAL (
    SELECT * FROM precast.entries AS e WHERE ${publishedIn(values.place(field.target))}
      AND e.id = CASE WHEN precast.is_uuid(reference.id #>> '{}') THEN (reference.id #>> '{}')::uuid END
    LIMIT 1) AS e`;
}

function publishedIn(slug: string): string {
  return `e.content_type_id = (SELECT id FROM types WHERE types.slug = ${slug}) AND e.status = 'published'`;
}

/** Not by precast.elements: here one call would take longer than all the rest. */
function elementsOf(value: string): string {
  return `jsonb_array_elements(CASE WHEN precast.holds_elements('relation', ${value}) THEN ${value} ELSE '[]' END) WITH ORDINALITY`;
}

/** The slots of a published type: one row of [type id, slots, those counted in pairs, whether it is small], or none. */
export function slotsQuery(appKey: string, slug: string): Query {
  const text = `SELECT type.id::text, slots.map::text, array_to_json(slots.paired)::text, (${isSmallSql("type.id")})::text
FROM precast.content_types AS type
JOIN precast.slots ON slots.content_type_id = type.id
JOIN precast.apps AS app ON app.id = type.app_id WHERE app.key = $1 AND type.slug = $2 AND type.published`;
  return { text, values: [appKey, slug] };
}

/** How many published entries a type has, by the counts that the database keeps (schema/0015_counts.sql). */
export function totalOf(typeId: string): string {
  return `SELECT coalesce(sum(change), 0) AS total FROM precast.entry_counts WHERE content_type_id = ${typeId}`;
}

/** Published entries of a type to which any plan comes sooner, by an index of the type, than the best one is made. */
const SMALL = 1_000;

/** Whether a type is small: SQL of a boolean. */
export function isSmallSql(typeId: string): string {
  return `(${totalOf(typeId)}) <= ${SMALL}`;
}

/**
 * The edition of an app's published types: one row of a text that is the same only while the entries of all of them are the same
 * (schema/0015_counts.sql). Queries of entries tell it as well, of the moment at which they see them.
 */
export function editionQuery(appKey: string, slugs: readonly string[]): Query {
  const text = `SELECT ${EDITION} FROM ${TYPES_OF_APP} AND type.slug = ANY ($2::text[])`;
  return { text, values: [appKey, slugs], recurs: "any" };
}

/** The edition of the row `type`, with its name: two types may swap theirs. Without a blank. */
export function editionOf(typeId: string): string {
  return `(type.slug || ':' || ${typeId} || ':' || (
    SELECT coalesce(sum(mark), 0) FROM precast.entry_counts WHERE content_type_id = ${typeId}))`;
}

/** The editions of some types, joined. */
const EDITION = `string_agg(${editionOf("type.id")}, ' ' ORDER BY type.id)`;

/** How many entries each published type shows: rows of [slug, count]. */
export function entryCountsQuery(appKey: string): Query {
  const text = `SELECT type.slug, (${totalOf("type.id")})::text
FROM ${TYPES_OF_APP}`;
  return { text, values: [appKey], recurs: "any" };
}
