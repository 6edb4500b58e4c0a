/** What has changed in the database since a tree was built: for each type nothing, some entries, or everything. */

import { join } from "node:path";
import PACKAGE from "../../package.json" with { type: "json" };
import { listFolders, nameFile, nameFolder } from "../../shared/api/address.ts";
import type { App, ContentType } from "../../shared/api/catalog.ts";
import { type AppDefaults, readApp } from "../../shared/apps.ts";
import type { Session } from "../../shared/database/database.ts";
import { isFile, isLink, readText } from "../../shared/files.ts";
import { sql } from "../../shared/sql/query.ts";
import { formatCounted } from "../../shared/text.ts";
import {
  isCatalogOf,
  nameStateFile,
  readStateAt,
  readTreeState,
  type TreeState,
  UNRECORDED,
} from "../../shared/tree.ts";
import type { RemoteFiles } from "./remote.ts";

/** The database and the snapshot that a session reads: changes since a build are known only in the database that it read. */
export type Source = {
  /** Differs between servers, their timelines, databases, tables of entries and versions of the ICU collation. */
  readonly source: string;
  /** The text of the `pg_snapshot` in which the session reads. */
  readonly snapshot: string;
  /** Marks (UUIDs) of the builds that are recorded in this database, of the trees that were asked for. */
  readonly marks: ReadonlySet<string>;
};

/** The UUIDs with which a build is recorded in the database. */
export type BuildIds = Pick<TreeState, "tree" | "mark"> & {
  /** Marks of the earlier builds that the states of the tree's apps name: the database must not drop these. */
  readonly earlierMarks: readonly string[];
};

/** What later builds of these trees must know: the marks of all trees, of which each app may have one, are many. */
export async function readSource(session: Session, states: readonly Pick<TreeState, "tree">[]): Promise<Source> {
  const trees = [...new Set(states.map(({ tree }) => tree))];
  const [row] = await session.query(
    sql(
      `SELECT concat_ws(' ', system.system_identifier, checkpoint.timeline_id, here.oid,
  'precast.entries'::regclass::oid, pg_collation_actual_version('"und-x-icu"'::regcollation)), pg_current_snapshot()::text,
  (SELECT string_agg(mark::text, ' ') FROM precast.trees CROSS JOIN unnest(marks) AS mark WHERE tree = ANY ($1::uuid[]))
FROM pg_control_system() AS system, pg_control_checkpoint() AS checkpoint, pg_database AS here
WHERE here.datname = current_database()`,
      [trees],
    ),
  );
  return { source: row?.[0] ?? "", snapshot: row?.[1] ?? "", marks: new Set(row?.[2]?.split(" ")) };
}

/** Whether this is the database of the state's build and still has everything that the build has read. */
export function isFromSource({ source, marks }: Pick<Source, "source" | "marks">, state: TreeState): boolean {
  return state.source === source && marks.has(state.mark);
}

type TypeDelta =
  | { readonly kind: "same" }
  /** Entries that were written or removed since, drafts too. */
  | { readonly kind: "entries"; readonly ids: readonly string[] }
  | { readonly kind: "rebuild" };

/** Maximum number of changed entries with which a type is updated entry by entry instead of rebuilt. */
const MAX_UPDATED_ENTRIES = 2_000;
/** Up to this number of changed entries, a type is updated even if they are more than a tenth of its entries. */
const ALWAYS_UPDATED_ENTRIES = 20;

/**
 * SQL condition: the row was written by a transaction that the snapshot did not see. The first comparison can use
 * an index. The last one excludes transaction IDs that this server has not assigned yet: such rows come from the dump
 * of a server with higher IDs. What the own transaction wrote counts too: `precast plan` rolls it back afterwards.
 */
function unseenSql(column: string, snapshot = "$2::pg_snapshot"): string {
  return `${column} >= pg_snapshot_xmin(${snapshot}) AND NOT pg_visible_in_snapshot(${column}, ${snapshot})
  AND (${column} < pg_snapshot_xmax(pg_current_snapshot()) OR ${column} = pg_current_xact_id_if_assigned())`;
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
  return new Map(app.types.map((type) => [type.slug, compareApps(type, state, seen.get(type.slug))]));
}

function compareApps(
  type: ContentType,
  state: TreeState,
  found: { readonly same: boolean; readonly ids: readonly string[] } | undefined,
): TypeDelta {
  const before = state.app.types.find(({ slug }) => slug === type.slug);
  if (before === undefined || found?.same !== true || describeLayout(before) !== describeLayout(type))
    return { kind: "rebuild" };
  if (found.ids.length === 0) return { kind: "same" };
  const limit = Math.max(ALWAYS_UPDATED_ENTRIES, Math.min(MAX_UPDATED_ENTRIES, (state.counts[type.slug] ?? 0) / 10));
  return found.ids.length > limit ? { kind: "rebuild" } : { kind: "entries", ids: found.ids };
}

/**
 * The settings of a type that determine its entries and lists. Labels and descriptions appear only in the catalog and
 * the schema.
 */
function describeLayout({ default_sort, per_page, filterable_fields, sortable_fields, fields }: ContentType): string {
  const shown = fields.map(({ name, type, multiple }) => [name, type, multiple]);
  return JSON.stringify([default_sort, per_page, filterable_fields, sortable_fields, shown]);
}

// Decides whether an app is built in full or from its last build, and says why.

export type BuildMode =
  | { readonly mode: "full"; readonly reason: string }
  | { readonly mode: "incremental"; readonly reason: string; readonly state: TreeState };

/** `fullReason` is the reason for a full build, whatever the state of the last build; null when there is none. */
export function chooseMode(
  out: string,
  app: App,
  source: Source,
  fullReason: string | null,
  { isReachable, hasBelow }: Pick<RemoteFiles, "isReachable" | "hasBelow">,
): BuildMode {
  const full = (reason: string) => ({ mode: "full", reason }) as const;
  if (fullReason !== null) return full(fullReason);
  const path = nameStateFile(app.key);
  const text = readText(join(out, path));
  if (text === null) return full("it was not built before");
  const state = readStateAt(path, text);
  if (state === null) return full("the state of its last build cannot be read");
  const incompatibility = findIncompatibility(state, source);
  if (incompatibility !== null) return full(incompatibility);
  if (state.app.media_base_url !== app.media_base_url) return full("the address of its media has changed");
  if (!isReachable && hasBelow(nameFolder(app.key))) return full("some of its files exist only at the deploy target");
  if (findLinkedFolders(out, state.app).length + findLinkedFolders(out, app).length > 0)
    return full("a symbolic link is in the place of one of its folders");
  if (!listFirstFiles(state.app).every((file) => isFile(join(out, file)))) return full("files of its tree are missing");
  if (!isCatalogOf(state, readText(join(out, nameFolder(app.key), "_schemas.json")) ?? "", out))
    return full("its catalog is not the one that was built");
  return { mode: "incremental", reason: `since ${state.built_at}`, state };
}

/** Why changes since the build of this state cannot be determined; null when they can. */
export function findIncompatibility(state: TreeState, source: Pick<Source, "source" | "marks">): string | null {
  if (state.version !== PACKAGE.version) return `it was built by Precast ${state.version}`;
  if (state.mark === UNRECORDED) return "the database could not record its last build";
  if (isFromSource(source, state)) return null;
  return state.source === source.source
    ? "the database has lost recent changes, or no longer has the record of this build"
    : "it was built from another database";
}

/**
 * The catalog and the first page of each type, relative to the tree. An incremental build checks that these are there,
 * which is enough to notice that a folder was removed.
 */
export function listFirstFiles(app: App): string[] {
  const pages = app.types.map(({ slug }) => ({ kind: "page", slug, page: 1n }) as const);
  return [{ kind: "catalog" } as const, ...pages].map((address) => `${nameFolder(app.key)}/${nameFile(address)}`);
}

/**
 * The folders of an app, relative to its own, in whose place there is a link: a link is no folder, and what is behind it
 * is not of the tree. The top folder of an app may be one, because an app may be on another disk.
 */
export function findLinkedFolders(out: string, app: App): string[] {
  const root = join(out, nameFolder(app.key));
  return ["", ...listFolders(app)].filter((folder) => isLink(join(root, folder)));
}

// Compares an app's tree with its database: when it was built, and what has changed since.

export type TreeStatus = Pick<TreeState, "built_at" | "files" | "bytes" | "sizes"> & {
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
  const state = readTreeState(settings.out, key);
  if (state === null) return null;
  const { built_at, files, bytes, sizes } = state;
  const known = isFromSource(await readSource(session, [state]), state);
  const [changed, removed] = known ? await countChanges(session, key, state.snapshot) : [null, null];
  const recreated = known ? await findRecreated(session, key, state.snapshot) : [];
  const redefined = [...new Set([...(await findRedefined(session, key, state, settings)), ...recreated])].sort();
  const current = changed === 0 && removed === 0 && redefined.length === 0;
  return { built_at, files, bytes, sizes, changed, removed, redefined, current };
}

/** In words. `isUnrecorded` is whether the database could not record the last build. */
export function describeBehind({ current, changed, removed, redefined }: TreeStatus, isUnrecorded: boolean): string {
  if (isUnrecorded) return "by a role that may only read: what has changed since is not known";
  if (changed === null || removed === null)
    return "built from another database, or from this one before it was restored from a backup";
  if (current) return "up to date";
  const behind = [
    ...(changed > 0 ? [`${formatCounted(changed, "entry", "entries")} changed`] : []),
    ...(removed > 0 ? [`${formatCounted(removed, "entry", "entries")} removed`] : []),
    ...(redefined.length > 0 ? [`${redefined.join(", ")} redefined`] : []),
  ];
  return `${behind.join(", ")} since`;
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

/** Changes of each type that are counted at most: counting a new import of a million would take seconds. */
const MOST_COUNTED = 10_000;

/** Number of entries and types that were changed or removed since the builds; null when no app is from this database. */
export async function countUnbuilt(session: Session, states: readonly TreeState[]): Promise<number | null> {
  const source = await readSource(session, states);
  const known = states.filter((state) => isFromSource(source, state));
  if (known.length === 0) return null;
  const count = (table: string, column: string) =>
    `(SELECT count(*) FROM (SELECT FROM precast.${table} AS one WHERE one.content_type_id = type.id
   AND ${unseenSql(`one.${column}`, "built.snapshot")} LIMIT ${MOST_COUNTED}) AS counted)`;
  const [row] = await session.query(
    sql(
      `SELECT sum(${count("entries", "changed_in")} + ${count("removals", "removed_in")}
  + (${unseenSql("type.begun_in", "built.snapshot")})::int)::text
FROM unnest($1::text[], $2::pg_snapshot[]) AS built (key, snapshot) JOIN precast.apps AS app ON app.key = built.key
JOIN precast.content_types AS type ON type.app_id = app.id AND type.published`,
      [known.map(({ app }) => app.key), known.map(({ snapshot }) => snapshot)],
    ),
  );
  return Number(row?.[0] ?? 0);
}
