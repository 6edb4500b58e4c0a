/** The orders in which indexes hold texts. A library of the operating system has them, and another version of it may have others. */
import { type Session, sql } from "../database/database.ts";

/** Of this one the server has another version now than the indexes were made with. */
export type ChangedCollation = {
  /** As SQL names it. */
  readonly name: string;
  readonly before: string;
  readonly now: string;
};

export async function changedCollations(session: Pick<Session, "query">): Promise<ChangedCollation[]> {
  const rows = await session.query(
    // One after the other: to ask for the version of every order that there is takes long.
    sql(`WITH used AS MATERIALIZED (
  SELECT * FROM pg_collation WHERE oid IN (
    SELECT unnest(indcollation) FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
    WHERE relnamespace = 'precast'::regnamespace))
SELECT format('%I.%I', collnamespace::regnamespace, collname), collversion, pg_collation_actual_version(oid)
FROM used WHERE collversion <> pg_collation_actual_version(oid)`),
  );
  return rows.map(([name, before, now]) => ({ name: name as string, before: before as string, now: now as string }));
}
