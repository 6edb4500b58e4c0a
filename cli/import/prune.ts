/** Deletes what an app has and the bundle lacks, as `--prune` asks for. */
import { readBatches } from "../../shared/database/cursor.ts";
import type { Session } from "../../shared/database/database.ts";
import { sql } from "../../shared/query.ts";
import type { BundleType } from "./definition.ts";
import { fieldNames, type TypeRow } from "./definition-rows.ts";
import { type Changes, deletions } from "./report.ts";

export type Pruned = { readonly types: Changes; readonly fields: Changes; readonly entries: Changes };

/**
 * Deletes the app's fields and types that the bundle lacks, and the entries of those types. Deletes the entries first,
 * because a trigger rewrites the entries of a type that loses a field.
 */
export async function pruneDefinitions(session: Session, app: string, types: readonly BundleType[]): Promise<Pruned> {
  const remove = async (table: string, condition: string) => {
    const rows = await session.query(
      sql(
        `WITH wanted AS (SELECT * FROM jsonb_to_recordset($2::jsonb) AS wanted (slug text, fields jsonb)),
         kind AS (
           SELECT content_types.id, wanted.slug IS NULL AS is_gone, wanted.fields
           FROM precast.content_types LEFT JOIN wanted USING (slug) WHERE app_id = $1::integer),
         deleted AS (DELETE FROM precast.${table} AS gone USING kind WHERE ${condition} RETURNING 1)
         SELECT count(*)::text FROM deleted`,
        [app, fieldNames(types)],
      ),
    );
    return deletions(Number(rows[0]?.[0]));
  };
  return {
    entries: await remove("entries", "gone.content_type_id = kind.id AND kind.is_gone"),
    fields: await remove("fields", "gone.content_type_id = kind.id AND (kind.is_gone OR NOT kind.fields ? gone.name)"),
    types: await remove("content_types", "gone.id = kind.id AND kind.is_gone"),
  };
}

const DELETE = `
  WITH deleted AS (
    DELETE FROM precast.entries WHERE content_type_id = $1::integer AND id = ANY ($2::text[]::uuid[]) RETURNING 1)
  SELECT count(*)::text FROM deleted`;

/** Deletes the entries of a type whose ids are not in `seen`. */
export async function pruneEntries(
  session: Session,
  { id: type }: TypeRow,
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
