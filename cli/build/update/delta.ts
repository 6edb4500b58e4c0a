/** What has changed in the database since a tree was built: for each type nothing, some entries, or everything. */
import type { App, ContentType } from "../../../shared/catalog.ts";
import type { Session } from "../../../shared/database/database.ts";
import { sql } from "../../../shared/query.ts";
import type { TreeState } from "../../../shared/state.ts";

export type TypeDelta =
  | { readonly kind: "same" }
  /** Entries that were written or removed since, drafts too. */
  | { readonly kind: "entries"; readonly ids: readonly string[] }
  | { readonly kind: "anew" };

/** Maximum number of changed entries with which a type is updated entry by entry instead of built anew. */
const MAX_UPDATED_ENTRIES = 2_000;
/** Up to this number of changed entries, a type is updated even if they are more than a tenth of its entries. */
const ALWAYS_UPDATED_ENTRIES = 20;

/**
 * SQL condition: the row was written by a transaction that the snapshot `$2` did not see. The first comparison can use
 * an index. The last one excludes transaction IDs that this server has not assigned yet: such rows come from the dump
 * of a server with higher IDs.
 */
export function unseenSql(column: string): string {
  return `${column} >= pg_snapshot_xmin($2::pg_snapshot) AND NOT pg_visible_in_snapshot(${column}, $2::pg_snapshot)
  AND ${column} < pg_snapshot_xmax(pg_current_snapshot())`;
}

/** The deltas of an app's types by slug since the build of `state`, which must have read the same database. */
export async function readDeltas(session: Session, app: App, state: TreeState): Promise<Map<string, TypeDelta>> {
  const rows = await session.query(
    sql(
      `SELECT type.slug, (NOT (${unseenSql("type.begun_in")}))::text, change.id::text
FROM precast.apps AS app JOIN precast.content_types AS type ON type.app_id = app.id AND type.published
LEFT JOIN LATERAL (
  (SELECT id FROM precast.entries AS e
   WHERE e.content_type_id = type.id AND ${unseenSql("e.changed_in")}
   ORDER BY e.content_type_id, e.changed_in LIMIT ${MAX_UPDATED_ENTRIES + 1})
  UNION
  (SELECT id FROM precast.removals AS removal
   WHERE removal.content_type_id = type.id AND ${unseenSql("removal.removed_in")}
   ORDER BY removal.content_type_id, removal.removed_in LIMIT ${MAX_UPDATED_ENTRIES + 1})
) AS change ON true
WHERE app.key = $1 ORDER BY 1, 3`,
      [app.key, state.snapshot],
    ),
  );
  const seen = new Map<string, { readonly same: boolean; readonly ids: string[] }>();
  for (const [slug, same, id] of rows) {
    const found = seen.get(slug as string) ?? { same: same === "true", ids: [] };
    seen.set(slug as string, found);
    if (id != null) found.ids.push(id);
  }
  return new Map(app.types.map((type) => [type.slug, deltaOf(type, state, seen.get(type.slug))]));
}

function deltaOf(
  type: ContentType,
  state: TreeState,
  found: { readonly same: boolean; readonly ids: readonly string[] } | undefined,
): TypeDelta {
  const before = state.app.types.find(({ slug }) => slug === type.slug);
  if (before === undefined || found?.same !== true || layoutOf(before) !== layoutOf(type)) return { kind: "anew" };
  if (found.ids.length === 0) return { kind: "same" };
  const limit = Math.max(ALWAYS_UPDATED_ENTRIES, Math.min(MAX_UPDATED_ENTRIES, (state.counts[type.slug] ?? 0) / 10));
  return found.ids.length > limit ? { kind: "anew" } : { kind: "entries", ids: found.ids };
}

/**
 * The settings of a type that determine its entries and lists. Labels and descriptions appear only in the catalog and
 * the schema.
 */
function layoutOf({ default_sort, per_page, filterable_fields, sortable_fields, fields }: ContentType): string {
  const shown = fields.map(({ name, type, multiple }) => [name, type, multiple]);
  return JSON.stringify([default_sort, per_page, filterable_fields, sortable_fields, shown]);
}
