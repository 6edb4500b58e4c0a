/**
 * Brings one app from the database to where clients see it: restores what a build needs of the deployed tree, builds what has
 * changed, deploys what differs and purges a CDN, all under the lock of the app at the target.
 */
import { randomUUID } from "node:crypto";
import { renameSync } from "node:fs";
import { join } from "node:path";
import { outputFileSync } from "fs-extra/esm";
import { segment } from "../../shared/api/address.ts";
import { type AppDefaults, readApp } from "../../shared/apps.ts";
import type { Database } from "../../shared/database/database.ts";
import { exists, makeFolders, namesIn, readText, removeAll } from "../../shared/files.ts";
import { sql } from "../../shared/sql/query.ts";
import { builtAppKeys, nameStateFile, readStateAt, STATE_FOLDER } from "../../shared/tree.ts";
import { buildTree } from "../builder/build.ts";
import { ForeignTreeError } from "../builder/built.ts";
import { countUnbuilt, findIncompatibility, readSource } from "../builder/delta.ts";
import { openRemoteFiles, type RemoteFiles } from "../builder/remote.ts";
import { type DeployOptions, deployLocked } from "../deploy/deploy.ts";
import { type LocalTree, scanTree, UnfinishedTreeError } from "../deploy/local-tree.ts";
import { type Notes, readNotes } from "../deploy/manifest.ts";
import { fetchFrom, restoreFiles } from "../deploy/restore.ts";
import type { StoreLock } from "../deploy/store.ts";
import type { Target } from "../deploy/target.ts";

export type PublicationOptions = AppDefaults &
  Pick<
    DeployOptions,
    "cacheControl" | "cdnCacheControl" | "concurrency" | "allowLocalMedia" | "purge" | "throwIfStopped"
  > & {
    readonly database: Database;
    readonly target: Target;
    /** Has a folder for each app, with what is kept of its tree between publications. */
    readonly folder: string;
    readonly maxSize: number;
    readonly now: () => Date;
    readonly onWarning: (sentence: string) => void;
  };

/** What a publication did. Nothing was written where all are 0. */
export type Published = {
  readonly app: string;
  readonly mode: "full" | "incremental" | "removal";
  readonly reason: string | null;
  readonly written: number;
  readonly deleted: number;
  readonly bytes: number;
};

/** The ETag that the manifest had when the local tree was the deployed one. */
const DEPLOYED = `${STATE_FOLDER}/deployed.json`;
/** Local files of an app beyond which they are forgotten: an update fetches the few that it needs. */
const MOST_FILES = 1_000;

/**
 * Throws what a build or a deploy throws, DeployLockedError while another process deploys the app among it. It can always be
 * repeated.
 */
export async function publishApp(appKey: string, options: PublicationOptions): Promise<Published> {
  const { target } = options;
  const appFolder = segment(appKey);
  const lock = await target.takeAppLock(appFolder);
  try {
    const notes = await readNotes(target.store, appFolder, { force: false });
    const readAt = options.now().toISOString();
    const isThere = await options.database.transaction("read", (session) => readApp(session, appKey, options));
    if (isThere === null) return await removePublished(appKey, lock, notes, readAt, options);
    return await buildAndDeploy(appKey, lock, notes, options).catch(async (error: unknown) => {
      // After an interrupted deploy, or with other headers, the store needs files that are only there: all are built anew.
      if (!(error instanceof UnfinishedTreeError)) throw error;
      await removeAll(join(options.folder, appFolder));
      return buildAndDeploy(appKey, lock, notes, options, true);
    });
  } finally {
    // A lock that cannot be released expires by itself.
    await lock.release().catch(() => {});
  }
}

async function buildAndDeploy(
  appKey: string,
  lock: StoreLock,
  notes: Notes,
  options: PublicationOptions,
  full = false,
): Promise<Published> {
  const { database, target, maxSize, now, onWarning, mediaBaseUrl } = options;
  const out = join(options.folder, segment(appKey));
  const remote = full ? undefined : await continueTree(out, appKey, notes, options);
  const [report] = await buildTree(database, {
    ...{ out, apps: null, only: appKey, full, dryRun: false },
    ...{ mediaBaseUrl, maxSize, now, onWarning, remote },
  });
  if (report === undefined || report.mode === "removal") throw new Error(`${appKey} was deleted meanwhile`);
  const tree = await scanTree(out);
  const app = tree.apps.get(appKey) ?? null;
  const locked = { app: { appFolder: segment(appKey), app }, lock, notes };
  const { counts, manifest } = await deployOne(target, tree, locked, { ...options, out });
  await keepTree(out, manifest, tree);
  return { app: appKey, mode: report.mode, reason: report.reason, ...counts };
}

/** The local tree, if it is the deployed one; otherwise what a build needs of that. Undefined where nothing can be used. */
async function continueTree(
  out: string,
  appKey: string,
  { manifest, etags }: Notes,
  { database, target, concurrency }: PublicationOptions,
): Promise<RemoteFiles | undefined> {
  if (manifest === null) return void (await removeAll(out));
  const isDeployed = readText(join(out, DEPLOYED)) === etags.manifest && builtAppKeys(out).includes(appKey);
  if (isDeployed) return openRemoteFiles(out, fetchFrom(target.store, concurrency));
  await removeAll(out);
  try {
    const restored = await restoreFiles(target.store, manifest.files, {
      ...{ out, concurrency, database },
    });
    if (restored.kind === "restored") return restored.remote;
  } catch (error) {
    // After an interrupted deploy the store may have later files than its manifest says.
    if (!(error instanceof ForeignTreeError)) throw error;
  }
  return void (await removeAll(out));
}

/** What is kept is valid as long as the manifest stays the same. */
async function keepTree(out: string, manifest: string | null, tree: LocalTree): Promise<void> {
  const local = [...tree.apps.values()].reduce((sum, { files }) => sum + files.size, 0) - tree.remote.size;
  if (manifest === null || local > MOST_FILES) await removeAll(out);
  else outputFileSync(join(out, DEPLOYED), manifest);
}

type Locked = Parameters<typeof deployLocked>[2][number];

async function deployOne(
  target: Target,
  tree: LocalTree,
  locked: Locked,
  options: PublicationOptions & { out: string },
) {
  const counts = { written: 0, deleted: 0, bytes: 0 };
  const { manifests } = await deployLocked(target.store, tree, [locked], {
    ...options,
    ...{ force: false, allowOlder: false, maxDelete: Number.MAX_SAFE_INTEGER },
    onPlan: ({ writes, removes }) => {
      counts.written = writes.flat().length;
      counts.deleted = removes.flat().length;
      counts.bytes = writes.flat().reduce((sum, { size }) => sum + size, 0);
    },
  });
  return { counts, manifest: manifests[0] ?? null };
}

/** `readAt` is when the database was found to have no such app: a tree that was built later is not deleted. */
async function removePublished(
  appKey: string,
  lock: StoreLock,
  notes: Notes,
  readAt: string,
  options: PublicationOptions,
): Promise<Published> {
  const out = join(options.folder, segment(appKey));
  await removeAll(out);
  const tree: LocalTree = { apps: new Map(), remote: new Set(), hasAllApps: false, builtAt: readAt, localMedia: [] };
  const locked = { app: { appFolder: segment(appKey), app: null }, lock, notes };
  const { counts } = await deployOne(options.target, tree, locked, { ...options, out });
  return { app: appKey, mode: "removal", reason: "the database has no such app", ...counts };
}

// Whether a publication takes long.

/** Entries beyond which a publication does not belong among the others: they take seconds to write. */
const LARGE = 2_000;

/** Whether so many entries of the app are to be built that others should not wait for it. */
export async function isLargePublication(
  appKey: string,
  { database, folder, target }: Pick<PublicationOptions, "database" | "folder" | "target">,
): Promise<boolean> {
  const [row] = await database.query(
    sql(
      `SELECT count(*)::text FROM (
  SELECT FROM precast.apps AS app JOIN precast.content_types AS type ON type.app_id = app.id AND type.published
  JOIN precast.entries AS e ON e.content_type_id = type.id AND e.status = 'published'
  WHERE app.key = $1 LIMIT ${LARGE + 1}) AS counted`,
      [appKey],
    ),
  );
  if (Number(row?.[0]) <= LARGE) return false;
  const path = nameStateFile(appKey);
  const text = readText(join(folder, segment(appKey), path)) ?? (await target.store.get(path))?.bytes.toString("utf8");
  const state = readStateAt(path, text ?? "");
  if (state === null) return true;
  return database.transaction("read", async (session) => {
    if (findIncompatibility(state, await readSource(session, [state])) !== null) return true;
    return ((await countUnbuilt(session, [state])) ?? 0) > LARGE;
  });
}

// What is kept of trees on the local disk.

/** Apps of which a tree is kept: the next publication of another fetches what it needs. */
const MOST_APPS = 500;

/** Runs `publish` for an app, and then forgets the trees of apps that were not published for long. */
export type Keep = <T>(appKey: string, publish: () => Promise<T>) => Promise<T>;

export function openKept(folder: string, most = MOST_APPS): Keep {
  /** The least recently published first. */
  const kept = new Set(namesIn(folder));
  const busy = new Set<string>();
  return async (appKey, publish) => {
    const own = segment(appKey);
    kept.delete(own);
    kept.add(own);
    busy.add(own);
    try {
      return await publish();
    } finally {
      busy.delete(own);
      const surplus = [...kept].filter((name) => !busy.has(name)).slice(0, Math.max(0, kept.size - most));
      for (const name of surplus) {
        kept.delete(name);
        await forgetTree(folder, name);
      }
    }
  };
}

/** Moved away first: a publication of the app that begins meanwhile finds nothing of it, not a part. */
async function forgetTree(folder: string, name: string): Promise<void> {
  // That of an app that is gone is removed already.
  if (!exists(join(folder, name))) return;
  const trash = `${folder}.trash`;
  makeFolders(trash);
  const moved = join(trash, randomUUID());
  renameSync(join(folder, name), moved);
  await removeAll(moved);
}
