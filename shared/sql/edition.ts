/** Builds the query for the edition of content types, which identifies the state of their entries. */
import type { Query } from "../query.ts";
import { TYPES_OF_APP } from "./app-types.ts";

/**
 * The edition of the published types among `slugs`: one row with a text that stays the same only while the entries of
 * all of them do (schema/0007_counts.sql). Queries of entries also return it, for the snapshot in which they see them.
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
export const EDITION = `string_agg(${editionOf("type.id")}, ' ' ORDER BY type.id)`;
