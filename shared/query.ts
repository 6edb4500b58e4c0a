/** Turns plans into SQL. Every query names its app, so none can see another's. The builder's are in tree-query.ts. */
import type { Field } from "./catalog.ts";
import { entryColumns } from "./column.ts";
import type { Query, Value } from "./database/database.ts";
import { NEWEST_FIRST, type SortKey, sortKeys } from "./order.ts";
import type { EntryPlan, ListPlan, SearchPlan } from "./plan.ts";
import { showsRichText } from "./shown.ts";
import { conditionSql, type Place } from "./where.ts";

/** Collects the values of a statement and gives their places. */
type Values = { readonly all: Value[]; readonly place: Place };

function collectValues(...first: Value[]): Values {
  const all = [...first];
  return { all, place: (value) => `$${all.push(value)}` };
}

/** The published type `$2` of the app `$1`; no row when there is none, and then no entry either. */
export const KIND = `kind AS MATERIALIZED (
  SELECT type.id, type.app_id FROM precast.content_types AS type JOIN precast.apps AS app ON app.id = type.app_id
  WHERE app.key = $1 AND type.slug = $2 AND type.published)`;
export const PUBLISHED = "e.content_type_id = (SELECT id FROM kind) AND e.status = 'published'";

/**
 * A page and the total: rows of [total, id, data, rich, published_at, created_at, updated_at]. No row when the type is
 * gone, one row without an id when the page is empty.
 */
export function listQuery(appKey: string, plan: ListPlan): Query {
  const values = collectValues(appKey, plan.type.slug);
  const conditions = plan.conditions.map((condition) => conditionSql(condition, values.place));
  return pageQuery(values, conditions, sortKeys(plan.sort), plan);
}

/** As listQuery. Full-word entries come first, then those in which the words occur more often. */
export function searchQuery(appKey: string, plan: SearchPlan): Query {
  const values = collectValues(appKey, plan.type.slug);
  const words = plan.words.map((word) => `lower(${values.place(word)}::text COLLATE "und-x-icu")`);
  const found = words.length === 0 ? ["false"] : words.map((word) => `e.words LIKE '%' || ${word} || '%'`);
  const conditions = [...found, ...plan.conditions.map((condition) => conditionSql(condition, values.place))];
  return pageQuery(values, conditions, plan.sort === null ? relevanceKeys(words) : sortKeys(plan.sort), plan);
}

/**
 * What matches is found once where it has to be searched for, and is then counted and cut; a list without conditions is
 * counted and cut by index. Rows are read whole for the page alone.
 */
function pageQuery(
  values: Values,
  conditions: readonly string[],
  keys: readonly SortKey[],
  plan: ListPlan | SearchPlan,
): Query {
  const once = conditions.length > 0 ? "MATERIALIZED" : "NOT MATERIALIZED";
  const text = `WITH ${KIND},
matched AS ${once} (
  SELECT e.id, ${keys.map(({ value }, index) => `${value} AS key_${index}`).join(", ")}
  FROM precast.entries AS e
  WHERE ${[PUBLISHED, ...conditions].join("\n    AND ")}),
page AS (
  SELECT first.id, row_number() OVER () AS place FROM (
    SELECT id FROM matched
    ORDER BY ${keys.map(({ direction }, index) => `key_${index} ${direction}`).join(", ")}
    ${limitSql(plan)}) AS first)
SELECT counted.total::text, shown.id, shown.data, shown.rich, shown.published_at, shown.created_at, shown.updated_at
FROM kind
CROSS JOIN (SELECT count(*) AS total FROM matched) AS counted
LEFT JOIN (
  SELECT page.place, ${entryColumns(showsRichText(plan.shown))}
  FROM page JOIN precast.entries AS e ON e.content_type_id = (SELECT id FROM kind) AND e.id = page.id) AS shown ON true
ORDER BY shown.place`;
  return { text, values: values.all };
}

function limitSql({ page, perPage }: ListPlan | SearchPlan): string {
  const offset = (page - 1n) * BigInt(perPage);
  const last = 2n ** 63n - 1n;
  return `LIMIT ${perPage} OFFSET ${offset > last ? last : offset}`;
}

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

/** How many entries each published type shows: rows of [slug, count]. */
export function entryCountsQuery(appKey: string): Query {
  const text = `SELECT type.slug, count(e.id)::text
FROM precast.apps AS app JOIN precast.content_types AS type ON type.app_id = app.id AND type.published
LEFT JOIN precast.entries AS e ON e.content_type_id = type.id AND e.status = 'published'
WHERE app.key = $1 GROUP BY type.slug`;
  return { text, values: [appKey] };
}

function relevanceKeys(words: readonly string[]): readonly SortKey[] {
  if (words.length === 0) return NEWEST_FIRST;
  const complete = words.map((word) => `e.words LIKE '% ' || ${word} || ' %'`).join(" AND ");
  const occurrences = (wanted: string) =>
    `(length(e.words) - length(replace(e.words, ${wanted}, ''))) / length(${wanted})`;
  const full = words.map((word) => occurrences(`(' ' || ${word} || ' ')`)).join(" + ");
  const partial = words.map((word) => occurrences(word)).join(" + ");
  return [
    { value: `(${complete})`, direction: "DESC" },
    { value: `CASE WHEN ${complete} THEN ${full} ELSE ${partial} END`, direction: "DESC" },
    ...NEWEST_FIRST,
  ];
}
