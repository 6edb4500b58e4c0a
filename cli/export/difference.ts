/** Finds what one app has and another lacks, or has otherwise, in words for a person. */
import type { Session } from "../../shared/database/database.ts";
import { readRows } from "../database.ts";

/** An entry that differs: `fields` are those with another value, for one that both apps have. */
export type DifferentEntry = {
  readonly type: string;
  readonly id: string;
  /** The entry's first text, by which a person knows it; null when it has none. */
  readonly title: string | null;
  readonly change: "new" | "changed" | "only there";
  readonly fields: readonly string[];
};

export type Differences = {
  readonly counts: readonly {
    readonly type: string;
    readonly change: DifferentEntry["change"];
    readonly count: number;
  }[];
  /** The first of each type and change. */
  readonly entries: readonly DifferentEntry[];
};

const SHOWN = 10;

/** `types` are slugs; null for all. */
export async function findDifferences(
  session: Session,
  from: string,
  to: string,
  types: readonly string[] | null,
): Promise<Differences> {
  const rows = await readRows<DifferentEntry & { readonly count: number }>(
    session,
    `WITH own AS (${entriesOf("$1")}), other AS (${entriesOf("$2")}), found AS (
       SELECT coalesce(own.slug, other.slug) AS type, coalesce(own.id, other.id) AS id,
         coalesce(own.title, other.title) AS title,
         CASE WHEN other.id IS NULL THEN 'new' WHEN own.id IS NULL THEN 'only there' ELSE 'changed' END AS change,
         ARRAY(SELECT key FROM jsonb_each(own.content) FULL JOIN jsonb_each(other.content) AS old USING (key)
               WHERE own.id IS NOT NULL AND other.id IS NOT NULL AND jsonb_each.value IS DISTINCT FROM old.value ORDER BY key)
           AS fields
       FROM own FULL JOIN other USING (slug, id) WHERE own.content IS DISTINCT FROM other.content)
     SELECT * FROM (
       SELECT found.*, count(*) OVER same AS count, row_number() OVER (same ORDER BY title, id) AS place
       FROM found WINDOW same AS (PARTITION BY type, change)) AS numbered
     WHERE place <= ${SHOWN} ORDER BY type COLLATE "C", change, place`,
    [from, to, types === null ? null : JSON.stringify(types)],
  );
  const counts = new Map(rows.map(({ type, change, count }) => [`${type} ${change}`, { type, change, count }]));
  return {
    counts: [...counts.values()],
    entries: rows.map(({ type, id, title, change, fields }) => ({ type, id, title, change, fields })),
  };
}

function entriesOf(app: string): string {
  return `SELECT kind.slug, entry.id,
      coalesce(entry.data ->> 'title', entry.data ->> 'name', entry.data ->> 'slug') AS title,
      entry.data || entry.rich || jsonb_build_object('status', entry.status, 'published_at', entry.published_at,
        'created_at', entry.created_at, 'updated_at', entry.updated_at) AS content
    FROM precast.entries AS entry JOIN precast.content_types AS kind ON kind.id = entry.content_type_id
    JOIN precast.apps ON apps.id = kind.app_id
    WHERE apps.key = ${app} AND ($3::jsonb IS NULL OR $3::jsonb ? kind.slug)`;
}
