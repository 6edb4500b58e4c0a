/**
 * Builds the queries of a build: everything that the files of a type show, or only what has changed. Every query names its
 * app.
 */
import type { Column, ContentType } from "../api/catalog.ts";
import { defaultSort, type Sort } from "../api/columns.ts";
import { elementsSql, entryColumns, isContainable, sqlType, textSql, valueSql } from "./columns.ts";
import { orderSql } from "./page.ts";
import { type Query, TYPE_OF_APP } from "./query.ts";

/**
 * Common table of the published type `$2` of the app `$1`. If there is none it is empty, and IS_PUBLISHED finds
 * nothing.
 */
export const PUBLISHED_TYPE = `kind AS MATERIALIZED (SELECT type.id, type.app_id FROM ${TYPE_OF_APP})`;
export const IS_PUBLISHED = "e.content_type_id = (SELECT id FROM kind) AND e.status = 'published'";

/** Every published entry of a type in the order of its default pages: rows of [id, data, rich, …]. */
export function allEntriesQuery(appKey: string, type: ContentType): Query {
  const text = `WITH ${PUBLISHED_TYPE} SELECT ${entryColumns(true)} FROM precast.entries AS e
WHERE ${IS_PUBLISHED} ORDER BY ${orderSql(defaultSort(type))}`;
  return { text, values: [appKey, type.slug] };
}

/** The entries with these ids that are published, ordered by id: rows of [id, data, rich, …]. */
export function entriesOfQuery(appKey: string, type: ContentType, ids: readonly string[]): Query {
  const text = `WITH ${PUBLISHED_TYPE} SELECT ${entryColumns(true)} FROM precast.entries AS e
WHERE ${IS_PUBLISHED} AND e.id = ANY ($3::uuid[]) ORDER BY e.id`;
  return { text, values: [appKey, type.slug, ids] };
}

/** The 1-based places of these entries in the order of default pages: rows of [place, id, data, rich, …] by place. */
export function placesQuery(appKey: string, type: ContentType, ids: readonly string[]): Query {
  const text = `WITH ${PUBLISHED_TYPE},
placed AS (
  SELECT e.id, row_number() OVER (ORDER BY ${orderSql(defaultSort(type))}) AS place
  FROM precast.entries AS e WHERE ${IS_PUBLISHED})
SELECT placed.place::text, ${entryColumns(false)}
FROM placed JOIN precast.entries AS e ON e.content_type_id = (SELECT id FROM kind) AND e.id = placed.id
WHERE placed.id = ANY ($3::uuid[])
ORDER BY placed.place`;
  return { text, values: [appKey, type.slug, ids] };
}

/** The first `size` entries in the order of a sort: rows of [id, data, rich, …]. */
export function headQuery(appKey: string, type: ContentType, sort: Sort, size: number): Query {
  const text = `WITH ${PUBLISHED_TYPE},
head AS (
  SELECT first.id, row_number() OVER () AS place FROM (
    SELECT e.id FROM precast.entries AS e WHERE ${IS_PUBLISHED} ORDER BY ${orderSql(sort)} LIMIT ${size}) AS first)
SELECT ${entryColumns(false)}
FROM head JOIN precast.entries AS e ON e.content_type_id = (SELECT id FROM kind) AND e.id = head.id
ORDER BY head.place`;
  return { text, values: [appKey, type.slug] };
}

/** The ids of the first entries by each of several sorts, in one scan of a small type: one row, comma-separated. */
export function headIdsQuery(appKey: string, type: ContentType, sorts: readonly Sort[], size: number): Query {
  const heads = sorts.map((sort) => `array_to_string((array_agg(e.id ORDER BY ${orderSql(sort)}))[1:${size}], ',')`);
  const text = `WITH ${PUBLISHED_TYPE} SELECT ${heads.join(",\n  ")} FROM precast.entries AS e WHERE ${IS_PUBLISHED}`;
  return { text, values: [appKey, type.slug] };
}

/**
 * The first `size` candidates of each contest, in the order of its sort: one row with a column of comma-separated ids
 * for each contest. Candidates that are not published are left out.
 */
export function firstsQuery(
  appKey: string,
  type: ContentType,
  contests: readonly { readonly sort: Sort; readonly candidates: readonly string[] }[],
  size: number,
): Query {
  const firsts = contests.map(
    ({ sort }, index) => `array_to_string(ARRAY(SELECT e.id FROM precast.entries AS e
  WHERE ${IS_PUBLISHED} AND e.id = ANY ($${index + 3}::uuid[]) ORDER BY ${orderSql(sort)} LIMIT ${size}), ',')`,
  );
  return {
    text: `WITH ${PUBLISHED_TYPE} SELECT ${firsts.join(",\n")}`,
    values: [appKey, type.slug, ...contests.map(({ candidates }) => candidates)],
  };
}

/** The ids of all published entries of a type: rows of [id]. */
export function publishedIdsQuery(appKey: string, slug: string): Query {
  return {
    text: `WITH ${PUBLISHED_TYPE} SELECT e.id::text FROM precast.entries AS e WHERE ${IS_PUBLISHED}`,
    values: [appKey, slug],
  };
}

/** The number of published entries of each published type of these apps: rows of [app key, slug, count]. */
export function appCountsQuery(appKeys: readonly string[]): Query {
  const text = `SELECT app.key, type.slug, count(e.id)::text
FROM precast.apps AS app JOIN precast.content_types AS type ON type.app_id = app.id AND type.published
LEFT JOIN precast.entries AS e ON e.content_type_id = type.id AND e.status = 'published'
WHERE app.key = ANY ($1::text[]) GROUP BY app.key, type.slug`;
  return { text, values: [appKeys] };
}

/**
 * For each of these apps that names no address of media: a media field of which a published entry has a value. Rows of
 * [app key, slug, field].
 */
export function unaddressedMediaQuery(appKeys: readonly string[]): Query {
  const text = `SELECT app.key, found.slug, found.name FROM precast.apps AS app CROSS JOIN LATERAL (
  SELECT type.slug, field.name FROM precast.content_types AS type
  JOIN precast.fields AS field ON field.content_type_id = type.id AND field.type = 'media'
  JOIN precast.entries AS e ON e.content_type_id = type.id AND e.status = 'published'
  WHERE type.app_id = app.id AND type.published AND e.data ->> field.name NOT IN ('', '[]') LIMIT 1) AS found
WHERE app.key = ANY ($1::text[]) AND app.media_base_url IS NULL ORDER BY app.key COLLATE "C"`;
  return { text, values: [appKeys] };
}

/** The number of published entries of a type: one row. */
export function countQuery(appKey: string, slug: string): Query {
  return {
    text: `WITH ${PUBLISHED_TYPE} SELECT count(*)::text FROM precast.entries AS e WHERE ${IS_PUBLISHED}`,
    values: [appKey, slug],
  };
}

/** The slugs of an app's types that are not published: rows of [slug]. */
export function hiddenTypesQuery(appKey: string): Query {
  const text = `SELECT type.slug FROM precast.content_types AS type
JOIN precast.apps AS app ON app.id = type.app_id WHERE app.key = $1 AND NOT type.published`;
  return { text, values: [appKey] };
}

// Builds the queries of a build that group a type's entries by the values of a column: one group for each filtered
// page.

/**
 * The first `size` entries of each value that a filter can ask for, grouped by value: rows of ["=" and the value,
 * total, id, data, rich, …]. The "=" keeps a U+FEFF at the start of a value, which the embedded database would drop.
 * `values` are canonical spellings; null means all values.
 */
export function facetHeadsQuery(
  appKey: string,
  type: ContentType,
  column: Column,
  size: number,
  values: readonly string[] | null,
): Query {
  const { key, elements } = keySql(column);
  const wanted = values === null ? { join: "", test: "" } : wantedSql(column, key);
  const text = `WITH ${PUBLISHED_TYPE},
head AS (
  SELECT ${key} AS value, e.id, count(*) OVER (PARTITION BY ${key}) AS total,
    row_number() OVER (PARTITION BY ${key} ORDER BY ${orderSql(defaultSort(type))}) AS place
  FROM ${wanted.join} precast.entries AS e ${elements}
  WHERE ${IS_PUBLISHED} AND (${key})::text <> ''${wanted.test})
SELECT '=' || head.value::text, head.total::text, ${entryColumns(false)}
FROM head JOIN precast.entries AS e ON e.content_type_id = (SELECT id FROM kind) AND e.id = head.id
WHERE head.place <= ${size}
ORDER BY head.value, head.place`;
  return { text, values: [appKey, type.slug, ...(values === null ? [] : [values])] };
}

/** Restricts to the wanted values `$3`: by index where equality is containment, else in one scan of all entries. */
function wantedSql(column: Column, key: string): { join: string; test: string } {
  if (!isContainable(column)) {
    return { join: "", test: ` AND ${key} = ANY ($3::${column.type === "timestamp" ? "text" : sqlType(column)}[])` };
  }
  const value = `wanted.value::${sqlType(column)}`;
  const held = column.multiple ? `jsonb_build_array(${value})` : value;
  return {
    join: "unnest($3::text[]) AS wanted(value) CROSS JOIN",
    test: ` AND e.data @> jsonb_build_object('${column.name}', ${held}) AND ${key} = ${value}`,
  };
}

/** SQL of the bytes of an entry's values but rich text, as they are when nothing is compressed. */
const SIZE = "pg_column_size(e.data || '{}'::jsonb)::bigint";

/**
 * The bytes of a type's published entries, those of their rich text as it is stored, the bytes of the largest entry, the
 * number of entries, and the bytes where each counts once for each value that it has in one of the columns: one row.
 */
export function sizesQuery(appKey: string, type: ContentType, columns: readonly Column[]): Query {
  const values = columns.map(({ name, multiple }) =>
    multiple
      ? `CASE jsonb_typeof(e.data -> '${name}') WHEN 'array' THEN jsonb_array_length(e.data -> '${name}') ELSE 0 END`
      : "1",
  );
  const text = `WITH ${PUBLISHED_TYPE} SELECT coalesce(sum(size), 0)::text, coalesce(sum(rich), 0)::text,
  coalesce(max(size), 0)::text, count(*)::text, coalesce(sum(size * places), 0)::text FROM (
  SELECT ${SIZE} AS size, pg_column_size(e.rich) AS rich, ${["0", ...values].join(" + ")} AS places
  FROM precast.entries AS e WHERE ${IS_PUBLISHED}) AS entry`;
  return { text, values: [appKey, type.slug] };
}

/** The bytes of the first pages of all values of a column, of `size` entries each, and the number of values: one row. */
export function facetSizeQuery(appKey: string, type: ContentType, column: Column, size: number): Query {
  const { key, elements } = keySql(column);
  const text = `WITH ${PUBLISHED_TYPE} SELECT coalesce(sum(least(entries, ${size}) * bytes), 0)::bigint::text, count(*)::text FROM (
  SELECT count(*) AS entries, avg(${SIZE}) AS bytes FROM precast.entries AS e ${elements}
  WHERE ${IS_PUBLISHED} AND (${key})::text <> '' GROUP BY ${key}) AS facet`;
  return { text, values: [appKey, type.slug] };
}

/**
 * The number of a type's published entries, and the largest number of values that one of them has in all these columns
 * together, each of which a filter can ask for: one row.
 */
export function widestEntryQuery(appKey: string, type: ContentType, columns: readonly Column[]): Query {
  const counts = columns.map((column) => {
    const { key } = keySql(column);
    if (!column.multiple) return `coalesce((${key})::text <> '', false)::integer`;
    return `(SELECT count(DISTINCT value) FROM ${elementsSql(column)} AS value WHERE value <> '')`;
  });
  const text = `WITH ${PUBLISHED_TYPE} SELECT count(*)::text, coalesce(max(${["0", ...counts].join(" + ")}), 0)::text
FROM precast.entries AS e WHERE ${IS_PUBLISHED}`;
  return { text, values: [appKey, type.slug] };
}

/** The number of values of a column that a filter can ask for, and the entries of the most frequent one: one row. */
export function facetCountQuery(appKey: string, type: ContentType, column: Column): Query {
  const { key, elements } = keySql(column);
  const text = `WITH ${PUBLISHED_TYPE} SELECT count(*)::text, coalesce(max(entries), 0)::text FROM (
  SELECT count(*) AS entries FROM precast.entries AS e ${elements}
  WHERE ${IS_PUBLISHED} AND (${key})::text <> '' GROUP BY ${key}) AS facet`;
  return { text, values: [appKey, type.slug] };
}

/**
 * SQL of the value that a filter on the column compares, by which entries are grouped, and of the join that gives it:
 * the distinct elements of a `multiple` field, '' for any other.
 */
export function keySql(column: Column): { key: string; elements: string } {
  if (column.multiple) {
    const elements = `CROSS JOIN LATERAL (SELECT DISTINCT value FROM ${elementsSql(column)} AS value) AS element`;
    return { key: 'element.value COLLATE "C"', elements };
  }
  if (column.type === "timestamp") return { key: `${textSql(column)} COLLATE "C"`, elements: "" };
  const value = `(${valueSql(column)})`;
  return { key: sqlType(column) === "text" ? `${value} COLLATE "C"` : value, elements: "" };
}
