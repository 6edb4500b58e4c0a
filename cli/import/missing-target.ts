/** Finds relations whose target is no content type of their app: `populate` shows nothing of them. */
import type { Session } from "../../shared/database/database.ts";
import { sql } from "../../shared/query.ts";

/** Slugs of the type and of its target, and the name of the relation. */
export type MissingTarget = { readonly type: string; readonly field: string; readonly target: string };

/** `app` is the app's id. They are allowed, because a CMS may add the target later, but most are misspelt. */
export async function findMissingTargets(session: Session, app: string): Promise<MissingTarget[]> {
  const rows = await session.query(
    sql(
      `SELECT kind.slug, field.name, field.target
       FROM precast.content_types AS kind
       JOIN precast.fields AS field ON field.content_type_id = kind.id AND field.type = 'relation'
       WHERE kind.app_id = $1::integer
         AND NOT EXISTS (
           SELECT FROM precast.content_types AS target WHERE target.app_id = kind.app_id AND target.slug = field.target)
       ORDER BY kind.slug, field.position`,
      [app],
    ),
  );
  return rows.map(([type, field, target]) => ({ type, field, target }) as MissingTarget);
}
