/** Writes entries, a batch at a time. */
import type { Session } from "../../shared/database/database.ts";
import { sql } from "../../shared/query.ts";
import type { TypeRow } from "./definition-rows.ts";
import type { Entry } from "./entry.ts";
import type { Changes } from "./report.ts";

const COLUMNS = ["status", "data", "rich", "published_at", "created_at", "updated_at"];
const stored = COLUMNS.map((column) => `entries.${column}`).join(", ");
const wanted = COLUMNS.map((column) => `excluded.${column}`).join(", ");

/** As `wanted`, with the values that the stored entry has in the fields $6, which the bundle lacks. */
const wantedAndKept = COLUMNS.map((column) => {
  if (column !== "data" && column !== "rich") return `excluded.${column}`;
  const kept = `SELECT jsonb_object_agg(key, value) FROM jsonb_each(entries.${column}) WHERE key = ANY ($6::text[])`;
  return `coalesce((${kept}), '{}') || excluded.${column}`;
}).join(", ");

/**
 * The database reads id, status and data from the line of the bundle (see `Entry.text`). Each column arrives as lines of
 * one text: PostgreSQL takes it apart in a tenth of the time that it needs for an array, whose elements are escaped.
 */
const INSERT = `
    INSERT INTO precast.entries (content_type_id, id, ${COLUMNS.join(", ")})
    SELECT $1::integer, (line ->> 'id')::uuid, line ->> 'status', line -> 'data', '{}',
      nullif(published_at, '')::timestamptz(3), created_at::timestamptz(3), updated_at::timestamptz(3)
    FROM unnest(string_to_array($2, E'\\n')::jsonb[], string_to_array($3, E'\\n'), string_to_array($4, E'\\n'),
      string_to_array($5, E'\\n')) AS batch (line, published_at, created_at, updated_at)`;

/** For a type without entries: leaves out the check for conflicts, which takes a twentieth of the time. */
const INSERT_NEW = `
  WITH written AS (${INSERT}
    RETURNING 1)
  SELECT count(*)::text, '0' FROM written`;

/**
 * `row` is what an entry becomes that is there already. On a conflict, the table's triggers have already brought
 * `excluded` into the form of the stored row (canonical values, rich text moved to `rich`), so that equal entries
 * compare as equal. The last SELECT sees the table as it was before the statement. Its subquery looks up one entry at a
 * time: as long as the database does not know the size of the table, a join would read the whole table for each batch.
 */
const upsertOf = (row: string) => `
  WITH written AS (${INSERT}
    ON CONFLICT (content_type_id, id) DO UPDATE SET (${COLUMNS.join(", ")}) = ROW (${row})
      WHERE (${stored}) IS DISTINCT FROM (${row})
    RETURNING content_type_id, id)
  SELECT count(*) FILTER (WHERE old_id IS NULL)::text, count(old_id)::text
  FROM (SELECT (
    SELECT old.id FROM precast.entries AS old WHERE (old.content_type_id, old.id) = (written.content_type_id, written.id)
  ) AS old_id FROM written) AS looked_up`;
const UPSERT = upsertOf(wanted);
const UPSERT_KEEPING = upsertOf(wantedAndKept);

/** Inserts entries. Each replaces the stored entry with its id, but for the values of fields that the bundle lacks. */
export async function writeEntries(session: Session, type: TypeRow, entries: readonly Entry[]): Promise<Changes> {
  const column = (of: (entry: Entry) => string) => entries.map(of).join("\n");
  const keeps = type.leftovers.length > 0;
  const upsert = keeps ? UPSERT_KEEPING : UPSERT;
  const [row] = await session.query(
    sql(type.isNew ? INSERT_NEW : upsert, [
      type.id,
      column((entry) => entry.text),
      column((entry) => entry.published_at ?? ""),
      column((entry) => entry.created_at),
      column((entry) => entry.updated_at),
      ...(keeps ? [type.leftovers] : []),
    ]),
  );
  const [created, updated] = (row ?? []).map(Number) as [number, number];
  return { created, updated, unchanged: entries.length - created - updated, deleted: 0 };
}
