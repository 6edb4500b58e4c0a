/**
 * Finds collations whose version has changed since the indexes were built. Collations come from a library of the
 * operating system, such as ICU, and another version of it may order texts differently.
 */
import type { Session } from "../database/database.ts";
import { sql } from "../query.ts";

/** A collation whose version on the server is no longer the one with which the indexes were built. */
export type ChangedCollation = {
  /** Schema-qualified name, quoted as an SQL identifier. */
  readonly name: string;
  readonly before: string;
  readonly now: string;
};

export async function changedCollations(session: Pick<Session, "query">): Promise<ChangedCollation[]> {
  const rows = await session.query(
    // MATERIALIZED selects the used collations first: asking for the actual version of every collation is slow.
    sql(`WITH used AS MATERIALIZED (
  SELECT * FROM pg_collation WHERE oid IN (
    SELECT unnest(indcollation) FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
    WHERE relnamespace = 'precast'::regnamespace))
SELECT format('%I.%I', collnamespace::regnamespace, collname), collversion, pg_collation_actual_version(oid)
FROM used WHERE collversion <> pg_collation_actual_version(oid)`),
  );
  return rows.map(([name, before, now]) => ({ name: name as string, before: before as string, now: now as string }));
}
