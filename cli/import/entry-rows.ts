/** Writes and deletes entries, a batch at a time. */
import { readBatches } from "../../shared/database/cursor.ts";
import { type Session, sql } from "../../shared/database/database.ts";
import type { Entry } from "./entry.ts";
import { type Changes, deletions } from "./report.ts";

const COLUMNS = ["status", "data", "rich", "published_at", "created_at", "updated_at"];
const stored = COLUMNS.map((column) => `entries.${column}`).join(", ");
const wanted = COLUMNS.map((column) => `excluded.${column}`).join(", ");

/**
 * The database takes id, status and data out of the line as it was written. Where the entry is there already, the table's
 * triggers have by then sorted and spelled `excluded` as they did the stored row, so that equal entries compare as equal.
 * The last SELECT sees the table as it was before.
 */
const WRITE = `
  WITH written AS (
    INSERT INTO precast.entries (content_type_id, id, ${COLUMNS.join(", ")})
    SELECT $1::integer, (line ->> 'id')::uuid, line ->> 'status', line -> 'data', '{}',
      nullif(published_at, '')::timestamptz(3), created_at::timestamptz(3), updated_at::timestamptz(3)
    FROM unnest($2::text[]::jsonb[], $3::text[], $4::text[], $5::text[])
      AS batch (line, published_at, created_at, updated_at)
    ON CONFLICT (content_type_id, id) DO UPDATE SET (${COLUMNS.join(", ")}) = ROW (${wanted})
      WHERE (${stored}) IS DISTINCT FROM (${wanted})
    RETURNING content_type_id, id)
  SELECT count(*) FILTER (WHERE old.id IS NULL)::text, count(old.id)::text
  FROM written LEFT JOIN precast.entries AS old USING (content_type_id, id)`;

const DELETE = `
  WITH deleted AS (
    DELETE FROM precast.entries WHERE content_type_id = $1::integer AND id = ANY ($2::text[]::uuid[]) RETURNING 1)
  SELECT count(*)::text FROM deleted`;

/** Writes entries, each in place of the one with its id. */
export async function writeEntries(session: Session, type: string, entries: readonly Entry[]): Promise<Changes> {
  const column = (of: (entry: Entry) => string) => entries.map(of);
  const [row] = await session.query(
    sql(WRITE, [
      type,
      column((entry) => entry.text),
      column((entry) => entry.published_at ?? ""),
      column((entry) => entry.created_at),
      column((entry) => entry.updated_at),
    ]),
  );
  const [created, updated] = (row ?? []).map(Number) as [number, number];
  return { created, updated, unchanged: entries.length - created - updated, deleted: 0 };
}

/** Deletes the entries of a type but those with the ids that were seen. */
export async function pruneEntries(
  session: Session,
  type: string,
  seen: ReadonlyMap<string, number>,
): Promise<Changes> {
  let deleted = 0;
  const all = sql("SELECT id::text FROM precast.entries WHERE content_type_id = $1::integer", [type]);
  for await (const rows of readBatches(session, all)) {
    const stale = rows.map(([id]) => id as string).filter((id) => !seen.has(id));
    if (stale.length === 0) continue;
    const [row] = await session.query(sql(DELETE, [type, stale]));
    deleted += Number(row?.[0]);
  }
  return deletions(deleted);
}
