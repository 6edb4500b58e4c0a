/** Builds the SQL that reads how many published entries types have, which the database keeps (schema/0007_counts.sql). */
import type { Query, Row } from "../query.ts";
import { TYPES_OF_APP } from "./app-types.ts";

/** SQL of one row `total`: the number of published entries of a type, from the kept counts (schema/0007_counts.sql). */
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

/** The number of published entries of each published type: rows of [slug, count]. */
export function entryCountsQuery(appKey: string): Query {
  const text = `SELECT type.slug, (${totalOf("type.id")})::text
FROM ${TYPES_OF_APP}`;
  return { text, values: [appKey], recurringPlan: "generic" };
}

/** Published entries by slug, from the rows of entryCountsQuery. */
export function countsOf(rows: readonly Row[]): Map<string, number> {
  return new Map(rows.map(([slug, count]) => [slug as string, Number(count)]));
}
