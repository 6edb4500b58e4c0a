/** Builds the queries of a build that group a type's entries by the values of a column: one group for each filtered page. */
import type { Column, ContentType } from "../catalog.ts";
import type { Query } from "../query.ts";
import { defaultSort } from "../sort.ts";
import { elementsSql, entryColumns, isContainable, sqlType, textSql, valueSql } from "./column.ts";
import { orderSql } from "./order.ts";
import { IS_PUBLISHED, PUBLISHED_TYPE } from "./tree-query.ts";

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
