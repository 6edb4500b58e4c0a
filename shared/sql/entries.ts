/** Builds the query for single entries, and for the related entries that they show. Source: contract.md section 4. */
import type { Field } from "../api/catalog.ts";
import type { EntryPlan } from "../api/plan.ts";
import { entryColumns, noStoredColumns, storedColumns } from "./columns.ts";
import { CONTENT_VERSION } from "./counts.ts";
import { collectValues, type Query, TYPES_OF_APP, type Values } from "./query.ts";

/** The part of an entry plan that must be equal for one query to answer several plans. */
type EntriesAsked = Pick<EntryPlan, "type" | "populate">;

/**
 * Finds entries by UUID, and the related entries that `populate` asks for: rows of [place, field, id, data, rich, …,
 * content version], all from one snapshot. The place is the 1-based position in `ids`. An entry has the field '' and comes
 * before its related entries. An extra first row has the place 0 and is the only one with a content version, which covers
 * all types involved. No rows when the type does not exist or is not published.
 */
export function entriesQuery(appKey: string, { type, populate }: EntriesAsked, ids: readonly string[]): Query {
  const values = collectValues(appKey, type.slug, ids, listTypes({ type, populate }));
  const related = populate.map((field, index) => relatedSql(field, index + 1, values));
  const text = `WITH types AS MATERIALIZED (
  SELECT type.id, type.slug FROM ${TYPES_OF_APP} AND type.slug = ANY ($4::text[])),
main AS MATERIALIZED (
  SELECT asked.place AS asked, ${storedColumns()} FROM unnest($3::uuid[]) WITH ORDINALITY AS asked(id, place)
  JOIN precast.entries AS e ON e.id = asked.id AND ${publishedIn("$2")})
SELECT asked::text, field, ${entryColumns(true)}, content_version FROM (
  SELECT 0 AS asked, '' AS field, 0 AS step, 0 AS place, ${noStoredColumns()}, (SELECT ${CONTENT_VERSION} FROM types AS type) AS content_version
  FROM types WHERE types.slug = $2
  UNION ALL
  SELECT asked, '', 0, 0, ${storedColumns()}, NULL FROM main AS e${related.join("")}
) AS e ORDER BY asked, step, place`;
  return { text, values: values.all, recurringPlan: "generic" };
}

/** The slugs of the types whose entries the answer may contain. */
export function listTypes({ type, populate }: EntriesAsked): readonly string[] {
  return [type.slug, ...populate.map(({ target }) => target ?? "")];
}

function relatedSql(field: Field, step: number, values: Values): string {
  const references = field.multiple
    ? elementsSql(`main.data -> '${field.name}'`)
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
function elementsSql(value: string): string {
  return `jsonb_array_elements(CASE WHEN precast.holds_elements('relation', ${value}) THEN ${value} ELSE '[]' END) WITH ORDINALITY`;
}
