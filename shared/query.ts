/**
 * Turns plans into SQL: an entry, counts and slots. Every query names its app, so none can see another's. Pages are in
 * page-query.ts, the builder's queries in tree-query.ts.
 */
import type { Field } from "./catalog.ts";
import { entryColumns } from "./column.ts";
import type { Query, Value } from "./database/database.ts";
import type { EntryPlan } from "./plan.ts";
import type { Place } from "./where.ts";

/** Collects the values of a statement and gives their places. */
export type Values = { readonly all: Value[]; readonly place: Place };

export function collectValues(...first: Value[]): Values {
  const all = [...first];
  return { all, place: (value) => `$${all.push(value)}` };
}

/** The published type `$2` of the app `$1`; no row when there is none, and then no entry either. */
export const KIND = `kind AS MATERIALIZED (
  SELECT type.id, type.app_id FROM precast.content_types AS type JOIN precast.apps AS app ON app.id = type.app_id
  WHERE app.key = $1 AND type.slug = $2 AND type.published)`;
export const PUBLISHED = "e.content_type_id = (SELECT id FROM kind) AND e.status = 'published'";

/**
 * One entry and the entries it names: rows of [field, id, data, rich, …]; the entry itself has the field ''. No row when
 * the type is gone, one row without an id when the entry is.
 */
export function entryQuery(appKey: string, plan: EntryPlan): Query {
  const values = collectValues(appKey, plan.type.slug, plan.id);
  const related = plan.populate.map((field, index) => relatedSql(field, index + 1, values));
  const text = `WITH ${KIND},
main AS MATERIALIZED (SELECT e.* FROM precast.entries AS e WHERE ${PUBLISHED} AND e.id = $3::uuid)
SELECT field, id, data, rich, published_at, created_at, updated_at FROM (
  SELECT '' AS field, 0 AS step, 0 AS place, ${entryColumns(true)} FROM kind LEFT JOIN main AS e ON true${related.join("")}
) AS found ORDER BY step, place`;
  return { text, values: values.all };
}

function relatedSql(field: Field, step: number, values: Values): string {
  const references = field.multiple
    ? `precast.strings(main.data -> '${field.name}') WITH ORDINALITY`
    : `(VALUES (main.data ->> '${field.name}', 1))`;
  return `
  UNION ALL
  SELECT '${field.name}', ${step}, reference.place, ${entryColumns(true)}
  FROM main CROSS JOIN kind
  CROSS JOIN LATERAL ${references} AS reference(id, place)
  JOIN precast.content_types AS target ON target.app_id = kind.app_id AND target.published AND target.slug = ${values.place(field.target)}
  JOIN precast.entries AS e ON e.content_type_id = target.id AND e.status = 'published'
    AND e.id = CASE WHEN reference.id ~ '^[0-9a-f-]{36}$' THEN reference.id::uuid END`;
}

/** The slots of a type: one row of [type id, slots]. */
export function slotsQuery(appKey: string, slug: string): Query {
  const text = `SELECT type.id::text, slots.map::text
FROM precast.content_types AS type
JOIN precast.slots ON slots.content_type_id = type.id
JOIN precast.apps AS app ON app.id = type.app_id WHERE app.key = $1 AND type.slug = $2`;
  return { text, values: [appKey, slug] };
}

/** How many entries each published type shows: rows of [slug, count]. */
export function entryCountsQuery(appKey: string): Query {
  const text = `SELECT type.slug, count(e.id)::text
FROM precast.apps AS app JOIN precast.content_types AS type ON type.app_id = app.id AND type.published
LEFT JOIN precast.entries AS e ON e.content_type_id = type.id AND e.status = 'published'
WHERE app.key = $1 GROUP BY type.slug`;
  return { text, values: [appKey] };
}
