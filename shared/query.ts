/** Turns plans into SQL. Every query names its app, so none can see another's. The builder's are in tree-query.ts. */
import type { Field } from "./catalog.ts";
import { entryColumns } from "./column.ts";
import type { Query, Value } from "./database/database.ts";
import { storedIn, testOf } from "./indexed.ts";
import { NEWEST_FIRST, type SortKey, sortKeys } from "./order.ts";
import type { EntryPlan, ListPlan, SearchPlan } from "./plan.ts";
import { showsRichText } from "./shown.ts";
import type { Slots } from "./slots.ts";
import type { Place } from "./where.ts";

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

/** The same, where the slots are the ones that are meant: `fits` says so. */
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
  if (tests.some(({ isServed }) => !isServed))
    return pageQuery(values, gatheredSql(matching, sortKeys(plan.sort), plan), plan);
  const stored = storedIn(plan.sort.column, slots);
  if (stored === null) return pageQuery(values, gatheredSql(matching, sortKeys(plan.sort), plan), plan);
  return pageQuery(
    values,
    { page: cutSql(matching, plan, stored), total: totalSql(plan, matching, slots, values) },
    plan,
  );
}

/** As listQuery. Full-word entries come first, then those in which the words occur more often. */
export function searchQuery(appKey: string, plan: SearchPlan, slots: Slots): Query {
  const values = collectValues(appKey, plan.type.slug, slots.typeId, slots.map);
  // Under the collation of the column: under another one its index is of no use.
  const words = plan.words.map((word) => `(lower(${values.place(word)}::text COLLATE "und-x-icu") COLLATE "default")`);
  const found = words.length === 0 ? ["false"] : words.map((word) => `e.words LIKE '%' || ${word} || '%'`);
  const tests = plan.conditions.map((condition) => testOf(condition, slots, values.place).sql);
  const keys = plan.sort === null ? relevanceKeys(words) : sortKeys(plan.sort);
  return pageQuery(values, gatheredSql([...found, ...tests], keys, plan, plan.sort === null ? UNPACKED : ""), plan);
}

/** Long words are compressed, and each look at them would unpack them anew. */
const UNPACKED = " CROSS JOIN LATERAL (SELECT e.words || '' AS words OFFSET 0) AS unpacked";

/** The parts of a query that find the ids of a page, in the common table `page` with their places, and the total. */
type Parts = { readonly page: string; readonly total: string };

/** Rows are read whole for the page alone. */
function pageQuery(values: Values, { page, total }: Parts, plan: ListPlan | SearchPlan): Query {
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

/** What matches is found once where it has to be searched for, and is then counted and cut. */
function gatheredSql(
  matching: readonly string[],
  keys: readonly SortKey[],
  plan: ListPlan | SearchPlan,
  beside = "",
): Parts {
  const page = `matched AS MATERIALIZED (
  SELECT e.id, ${keys.map(({ value }, index) => `${value} AS key_${index}`).join(", ")}
  FROM precast.entries AS e${beside}
  WHERE ${where(matching)}),
page AS (
  SELECT first.id, row_number() OVER () AS place FROM (
    SELECT id FROM matched
    ORDER BY ${keys.map(({ direction }, index) => `key_${index} ${direction}`).join(", ")}
    ${limitSql(plan)}) AS first)`;
  return { page, total: "SELECT count(*) AS total FROM matched" };
}

function where(matching: readonly string[]): string {
  return [PUBLISHED_IN_SLOTS, ...matching].join("\n    AND ");
}

/**
 * A page that an index gives in its order. Entries without a value come behind all others: the index of a slot does not
 * have them, so they are asked for apart, and only by a page that reaches so far.
 */
function cutSql(matching: readonly string[], { sort, page, perPage }: ListPlan, stored: string): string {
  const newest = "e.published_at DESC, e.id";
  const offset = offsetOf({ page, perPage });
  if (sort.column.name === "published_at") {
    return `page AS (
  SELECT first.id, row_number() OVER () AS place FROM (
    SELECT e.id FROM precast.entries AS e WHERE ${where(matching)}
    ORDER BY ${newest} LIMIT ${perPage} OFFSET ${offset}) AS first)`;
  }
  const valued = where([...matching, `${stored} IS NOT NULL`]);
  const valueless = where([...matching, `${stored} IS NULL`, `(SELECT count(*) FROM valued) < ${perPage}`]);
  return `valued AS MATERIALIZED (
  SELECT first.id, row_number() OVER () AS place FROM (
    SELECT e.id FROM precast.entries AS e WHERE ${valued}
    ORDER BY ${stored} ${sort.descending ? "DESC" : "ASC"}, ${newest} LIMIT ${perPage} OFFSET ${offset}) AS first),
page AS (
  SELECT id, place FROM valued
  UNION ALL
  SELECT first.id, ${perPage} + row_number() OVER () FROM (
    SELECT e.id FROM precast.entries AS e WHERE ${valueless}
    ORDER BY ${newest}
    LIMIT ${perPage} - (SELECT count(*) FROM valued)
    OFFSET CASE WHEN (SELECT count(*) FROM valued) < ${perPage}
      THEN greatest(0, ${offset} - (SELECT count(*) FROM precast.entries AS e WHERE ${valued})) END) AS first)`;
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
