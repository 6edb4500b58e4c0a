/** Compares an app's tree with its database: when it was built, and what has changed since. */
import { type AppDefaults, readApp } from "../../shared/apps.ts";
import type { Session } from "../../shared/database/database.ts";
import { sql } from "../../shared/query.ts";
import type { TreeState } from "../../shared/state.ts";
import { stateOf } from "../build/selection.ts";
import { isSourceOf, readSource } from "../build/source.ts";
import { unseenSql } from "../build/update/delta.ts";

export type TreeStatus = Pick<TreeState, "built_at" | "files" | "bytes"> & {
  /** Number of entries written since the build, drafts included; null when this database lacks the record of the build. */
  readonly changed: number | null;
  /** Number of entries deleted, moved to another type or given another id since the build; null as above. */
  readonly removed: number | null;
  /** Slugs of content types that are new, gone or changed, and the app's key when its own settings have changed. */
  readonly redefined: readonly string[];
  readonly current: boolean;
};

/** Null when no tree of the app is built. */
export async function readTreeStatus(
  session: Session,
  key: string,
  settings: AppDefaults & { readonly out: string },
): Promise<TreeStatus | null> {
  const state = stateOf(settings.out, key);
  if (state === null) return null;
  const { built_at, files, bytes } = state;
  const known = isSourceOf(await readSource(session), state);
  const [changed, removed] = known ? await countChanges(session, key, state.snapshot) : [null, null];
  const recreated = known ? await findRecreated(session, key, state.snapshot) : [];
  const redefined = [...new Set([...(await findRedefined(session, key, state, settings)), ...recreated])].sort();
  const current = changed === 0 && removed === 0 && redefined.length === 0;
  return { built_at, files, bytes, changed, removed, redefined, current };
}

async function countChanges(session: Session, key: string, snapshot: string): Promise<[number, number]> {
  const [row] = await session.query(
    sql(
      `WITH type AS (
  SELECT type.id FROM precast.content_types AS type JOIN precast.apps AS app ON app.id = type.app_id
  WHERE app.key = $1 AND type.published)
SELECT
  (SELECT count(*) FROM type JOIN precast.entries AS e ON e.content_type_id = type.id
   WHERE ${unseenSql("e.changed_in")}
  )::text,
  (SELECT count(*) FROM type JOIN precast.removals AS removal ON removal.content_type_id = type.id
   WHERE ${unseenSql("removal.removed_in")}
     AND NOT EXISTS (SELECT FROM precast.entries AS e
                     WHERE e.content_type_id = removal.content_type_id AND e.id = removal.id))::text`,
      [key, snapshot],
    ),
  );
  return [Number(row?.[0]), Number(row?.[1])];
}

/** Slugs of types that were created again, took another type's slug or lost all entries at once since the build. */
async function findRecreated(session: Session, key: string, snapshot: string): Promise<string[]> {
  const rows = await session.query(
    sql(
      `SELECT type.slug FROM precast.content_types AS type JOIN precast.apps AS app ON app.id = type.app_id
WHERE app.key = $1 AND type.published AND ${unseenSql("type.begun_in")}`,
      [key, snapshot],
    ),
  );
  return rows.map(([slug]) => slug as string);
}

async function findRedefined(
  session: Session,
  key: string,
  { app: before }: TreeState,
  defaults: AppDefaults,
): Promise<string[]> {
  const app = await readApp(session, key, defaults);
  const slugs = [...new Set([...before.types, ...(app?.types ?? [])].map(({ slug }) => slug))].sort();
  const types = slugs.filter((slug) => {
    const [old, fresh] = [before, app].map((one) => one?.types.find((type) => type.slug === slug));
    return JSON.stringify(old) !== JSON.stringify(fresh);
  });
  return app?.name === before.name && app.media_base_url === before.media_base_url ? types : [key, ...types];
}
