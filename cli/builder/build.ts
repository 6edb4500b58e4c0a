/**
 * Builds the tree: reads one snapshot of the database, writes the files that differ to a stage beside the tree, and
 * moves them into the tree when all are there.
 */
import { join } from "node:path";
import { nameFolder, segment } from "../../shared/api/address.ts";
import type { App } from "../../shared/api/catalog.ts";
import { type AppDefaults, readApps } from "../../shared/apps.ts";
import type { Database, Session } from "../../shared/database/database.ts";
import { takeLock } from "../../shared/lock.ts";
import { DEFAULT_MAX_SIZE } from "../../shared/settings/common.ts";
import { appCountsQuery, unaddressedMediaQuery } from "../../shared/sql/tree.ts";
import { appsOfTree, BUILD_LOCK, chooseApps, removedApps, type TreeApp, UNRECORDED } from "../../shared/tree.ts";
import type { Context } from "../command.ts";
import { type AppPlan, planApp } from "./app.ts";
import { ForeignTreeError } from "./built.ts";
import type { Change } from "./changes.ts";
import { type BuildIds, chooseMode, findLinkedFolders, isFromSource, readSource, type Source } from "./delta.ts";
import { addToHistory } from "./history.ts";
import { emptyTrash, findDamage, recover, removeLinks, reportChanges, resetDamagedTree, TRASH } from "./publish.ts";
import { chooseBuildIds, recordBuild } from "./record.ts";
import { missingApps, openRemoteFiles, type RemoteFiles, writeMissingApps } from "./remote.ts";
import { type AppReport, describeUnaddressed, finishApp, removeApp, shareSeconds, UNRECORDED_TEXT } from "./report.ts";
import { refuseTooLarge } from "./size.ts";
import { type ChangeSize, openStage, removeStage, type Stage } from "./stage.ts";

/** Number of files done, number of files in all, and size of the files done in bytes. */
export type FileProgress = { readonly done: number; readonly total: number; readonly bytes: number };

export type BuildOptions = AppDefaults & {
  readonly out: string;
  /** Keys of the apps to build; null for all. */
  readonly apps: readonly string[] | null;
  /** The key of the only app that the tree is of, whatever else the database has. Left out for a tree of all. */
  readonly only?: string;
  /** Computes every answer, even if an incremental build is possible. */
  readonly full: boolean;
  readonly dryRun: boolean;
  readonly now: () => Date;
  /** Gigabytes that the tree may have; DEFAULT_MAX_SIZE when it is left out. */
  readonly maxSize?: number;
  /** Called for each file that is processed. Leave it out when progress is not shown: this saves counting first. */
  readonly onProgress?: (progress: FileProgress) => void;
  readonly onChange?: (change: Change, size: ChangeSize) => void;
  /** Called when the build begins again, for the reason given: `onChange` is then called for all changes again. */
  readonly onRestart?: (reason: string) => void;
  /** Does this before a signal ends the process, until the returned function is called. */
  readonly beforeKilled?: Context["beforeKilled"];
  /** Told what the user should know of the result. */
  readonly onWarning?: (sentence: string) => void;
  /** The files that exist only where the tree was deployed. Left out when there is no place to fetch them from. */
  readonly remote?: RemoteFiles | undefined;
  /** For a dry run: an app as it would be with other content types than the database has. */
  readonly changeApp?: ((app: App) => App) | undefined;
};

/**
 * Unless it is a dry run, first completes or discards what a build that died has left. Throws LockedError when another
 * process is building the tree, LockLostError when the lock is lost meanwhile, UnknownAppError and EmptyDatabaseError.
 */
export async function buildTree(database: Database, options: BuildOptions): Promise<AppReport[]> {
  const { out } = options;
  if (options.dryRun) return buildOrRebuild(database, options, findDamage(out), () => {});
  let died = false;
  let forget = () => {};
  const lock = takeLock(join(out, BUILD_LOCK), () => {
    died = true;
  });
  try {
    removeLinks(out);
    const damage = findDamage(out);
    if (damage !== null) await resetDamagedTree(out);
    await recover(out, died, lock.check);
    // Now, not at the end: what a build that died has left may be what fills the disk.
    await emptyTrash(out);
    forget = options.beforeKilled?.(() => removeStage(out)) ?? forget;
    const start = options.now();
    const reports = await buildOrRebuild(database, options, damage, lock.check);
    lock.check();
    recordHistory(reports, start, options);
    await emptyTrash(out);
    lock.check();
    reportChanges(out);
    return reports;
  } finally {
    forget();
    lock.release();
  }
}

/** The tree is in place by then: a history that cannot be written is no reason to fail. */
function recordHistory(reports: readonly AppReport[], start: Date, { out, onWarning }: BuildOptions): void {
  try {
    addToHistory(out, start, reports, join(out, TRASH, "history"));
  } catch (error) {
    onWarning?.(`The tree is built, but its history could not be written: ${(error as Error).message}`);
  }
}

/**
 * Builds in full if `damage`, the reason not to trust the tree, is not null, and again if the build finds files that
 * somebody else has changed.
 */
function buildOrRebuild(
  database: Database,
  options: BuildOptions,
  damage: string | null,
  check: () => void,
): Promise<AppReport[]> {
  const fullReason = damage ?? (options.full ? "requested by --full" : null);
  return buildOnce(database, options, fullReason, check).catch((error: unknown) => {
    if (!(error instanceof ForeignTreeError)) throw error;
    options.onRestart?.(error.message);
    return buildOnce(database, options, error.message, check);
  });
}

/**
 * The whole build: one snapshot, a plan for each app, their answers onto the stage, then the stage into the tree.
 * `fullReason` is the reason to build everything, or null. `check` throws once the tree belongs to another build.
 */
async function buildOnce(
  database: Database,
  options: BuildOptions,
  fullReason: string | null,
  check: () => void,
): Promise<AppReport[]> {
  const { out, now } = options;
  const treeApps = appsOfTree(out);
  const buildIds = chooseBuildIds(treeApps);
  const remote = options.remote ?? openRemoteFiles(out, null);
  const progress = countProgress(options.onProgress);
  const stage = openStage({ ...options, check, builtAt: now().toISOString(), onFile: progress.add });
  try {
    const { finish, missing, isOutdated } = await database.transaction("read", async (session) => {
      const states = treeApps.flatMap(({ state }) => state ?? []);
      const source = await readSource(session, states);
      const all = (await readApps(session, options)).map(options.changeApp ?? ((app) => app));
      refuseEmptyDatabase(all, treeApps, out, source);
      const gone = findGone(all, treeApps, options.apps, source);
      const chosen = chooseApps(all, options.apps?.filter((key) => !gone.includes(key)) ?? null);
      const plans = await planApps(session, chosen, source, fullReason, { ...options, remote });
      const parts = plans.flatMap((plan) => plan.parts);
      refuseTooLarge(parts, maxBytes(options));
      progress.expect(plans.reduce((sum, { files }) => sum + files, 0));
      const finish: ((mark: string) => AppReport)[] = [];
      for (const plan of plans) finish.push(await stageApp(plan, stage, { ...source, ...buildIds }, options));
      for (const key of gone) {
        remote.addReplaced(segment(key));
        finish.push(await removeApp(stage.openApp(key), out, key));
      }
      if (options.apps === null) replaceOtherFolders(all, remote);
      if (options.mediaBaseUrl === null) await warnOfMedia(session, chosen, options);
      const isOutdated = gone.length > 0 || plans.some((plan) => plan.isOutdated);
      return { finish, missing: missingApps(all, chosen, treeApps), isOutdated };
    });
    const read = now();
    await stage.settle();
    const isRecorded = options.dryRun || !(stage.hasChanges() || isOutdated) || (await recordBuild(database, buildIds));
    if (!isRecorded) options.onWarning?.(UNRECORDED_TEXT);
    const reports = finish.map((end) => end(isRecorded ? buildIds.mark : UNRECORDED));
    if (!options.dryRun) {
      remote.saveFetched();
      // If the process dies in between, the tree counts as one that lacks apps, and a deploy deletes too little.
      if (missing.length > 0) writeMissingApps(out, missing);
      await stage.commit();
      remote.saveReplaced();
      if (missing.length === 0) writeMissingApps(out, missing);
    }
    return shareSeconds(reports, (now().getTime() - read.getTime()) / 1_000);
  } finally {
    await stage.close();
  }
}

class EmptyDatabaseError extends Error {
  constructor(out: string, keys: readonly string[]) {
    super(
      `The database has no app, but the tree in ${out} contains ${keys.join(", ")} from another database. Nothing was changed. ` +
        "Check --database-url (DATABASE_URL) and --data-dir. To remove the tree, delete its folder.",
    );
    this.name = "EmptyDatabaseError";
  }
}

/**
 * Throws EmptyDatabaseError when the database has no app, and the tree has one that may be from another database: a
 * wrong address must not delete a tree.
 */
function refuseEmptyDatabase(all: readonly App[], treeApps: readonly TreeApp[], out: string, source: Source): void {
  if (all.length > 0) return;
  const isForeign = ({ state }: TreeApp) => state === null || !isFromSource(source, state);
  const keys = treeApps.filter(isForeign).map(({ key }) => key);
  if (keys.length > 0) throw new EmptyDatabaseError(out, keys);
}

async function warnOfMedia(session: Session, apps: readonly App[], { onWarning }: BuildOptions): Promise<void> {
  if (onWarning === undefined) return;
  const unaddressed = await session.query(unaddressedMediaQuery(apps.map(({ key }) => key)));
  for (const row of unaddressed) onWarning(describeUnaddressed(row));
}

/**
 * Keys of the apps to remove from the tree, because the database has no longer any of that key. One that `asked` names may
 * be meant for another database, if this is not the one that it was built from.
 */
function findGone(
  all: readonly App[],
  treeApps: readonly TreeApp[],
  asked: readonly string[] | null,
  source: Source,
): string[] {
  const gone = removedApps(treeApps, all);
  if (asked === null) return gone.map(({ key }) => key);
  const isSure = ({ key, state }: TreeApp) => asked.includes(key) && state !== null && isFromSource(source, state);
  return gone.filter(isSure).map(({ key }) => key);
}

function countProgress(onProgress: BuildOptions["onProgress"]) {
  let [done, total, bytes] = [0, 0, 0];
  return {
    expect: (files: number) => {
      total = files;
    },
    add: (size: number) => {
      done += 1;
      bytes += size;
      onProgress?.({ done, total, bytes });
    },
  };
}

function maxBytes({ maxSize = DEFAULT_MAX_SIZE }: BuildOptions): number {
  return maxSize * 1_000_000_000;
}

async function planApps(
  session: Session,
  apps: readonly App[],
  source: Source,
  fullReason: string | null,
  options: BuildOptions & { readonly remote: RemoteFiles },
): Promise<AppPlan[]> {
  const { out, now, remote } = options;
  const chosen = apps.map((app) => ({ app, mode: chooseMode(out, app, source, fullReason, remote) }));
  const full = chosen.filter(({ mode }) => mode.mode === "full").map(({ app }) => app.key);
  const counts = await readCounts(session, full);
  const plans: AppPlan[] = [];
  const enough = maxBytes(options) / apps.reduce((sum, { types }) => sum + types.length, 1);
  for (const { app, mode } of chosen) {
    const start = now();
    const planned = { app, out, remote, count: options.onProgress !== undefined, enough };
    const plan = await namingFile(app, () => planApp(session, planned, mode, counts.get(app.key)));
    plans.push({ ...plan, app, mode, start, seconds: (now().getTime() - start.getTime()) / 1_000 });
  }
  return plans;
}

/** Numbers of published entries of these apps' types, by app key and slug. */
async function readCounts(session: Session, keys: readonly string[]): Promise<Map<string, Map<string, number>>> {
  const counts = new Map(keys.map((key) => [key, new Map<string, number>()]));
  if (keys.length === 0) return counts;
  for (const [key, slug, count] of await session.query(appCountsQuery(keys))) {
    counts.get(key as string)?.set(slug as string, Number(count));
  }
  return counts;
}

/** Runs a plan. The function that it resolves with is to be called once the stage is settled. */
async function stageApp(
  plan: AppPlan,
  stage: Stage,
  origin: Source & BuildIds,
  { out, now }: BuildOptions,
): Promise<(mark: string) => AppReport> {
  const staged = stage.openApp(plan.app.key, findLinkedFolders(out, plan.app));
  const start = now();
  const counts = await namingFile(plan.app, () => plan.run(staged));
  const seconds = plan.seconds + (now().getTime() - start.getTime()) / 1_000;
  return (mark) => finishApp({ ...plan, seconds }, staged, counts, { ...origin, mark });
}

/** Files that are only where the tree was deployed, in folders of apps that the database does not have, are forgotten. */
function replaceOtherFolders(all: readonly App[], remote: RemoteFiles): void {
  const folders = new Set(all.map(({ key }) => segment(key)));
  for (const folder of remote.appFolders()) if (!folders.has(folder)) remote.addReplaced(folder);
}

/** Completes the path in a ForeignTreeError, which may be relative to the folder of the app: messages need the whole. */
async function namingFile<T>(app: App, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const folder = `${nameFolder(app.key)}/`;
    if (!(error instanceof ForeignTreeError) || error.file.startsWith(folder)) throw error;
    throw new ForeignTreeError(`${folder}${error.file}`);
  }
}
