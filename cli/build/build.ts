/**
 * Builds the tree: reads one snapshot of the database, writes the files that differ to a stage beside the tree, and
 * moves them into the tree when all are there.
 */
import { join } from "node:path";
import { folderOf, segment } from "../../shared/address.ts";
import { type AppDefaults, readApps } from "../../shared/apps.ts";
import type { App } from "../../shared/catalog.ts";
import type { Database, Session } from "../../shared/database/database.ts";
import { takeLock } from "../../shared/lock.ts";
import { appCountsQuery } from "../../shared/sql/tree-query.ts";
import { BUILD_LOCK } from "../../shared/state.ts";
import { type AppPlan, planApp } from "./app-build.ts";
import { chooseBuildIds } from "./build-ids.ts";
import { damageOf, resetDamagedTree } from "./damage.ts";
import { type Elsewhere, openElsewhere } from "./elsewhere.ts";
import { type AppReport, type Ending, endApp, removeApp, shareSeconds } from "./ending.ts";
import { type FileProgress, type Meter, openMeter } from "./meter.ts";
import { type BuildMode, chooseMode } from "./mode.ts";
import { appsOfTree, chooseApps, refuseEmptyDatabase, removedApps, type TreeApp } from "./selection.ts";
import { type BuildIds, readSource, recordBuild } from "./source.ts";
import type { Change } from "./stage/changes.ts";
import { recover, reportChanges } from "./stage/publish.ts";
import { openStage, type Stage } from "./stage/stage.ts";
import { emptyTrash } from "./stage/trash.ts";
import { ForeignTreeError } from "./update/built.ts";

export type BuildOptions = AppDefaults & {
  readonly out: string;
  /** Keys of the apps to build; null for all. */
  readonly apps: readonly string[] | null;
  /** Computes every answer, even if an incremental build is possible. */
  readonly full: boolean;
  readonly dryRun: boolean;
  readonly now: () => Date;
  /** Called for each file that is processed. Leave it out when progress is not shown: this saves counting first. */
  readonly onProgress?: (progress: FileProgress) => void;
  readonly onChange?: (change: Change) => void;
  /** Called when the build begins anew, for the reason given: `onChange` is then called for all changes again. */
  readonly onRestart?: (reason: string) => void;
  /** The files that exist only where the tree was deployed. Left out when there is no place to fetch them from. */
  readonly elsewhere?: Elsewhere | undefined;
};

/**
 * Unless it is a dry run, first completes or discards what a build that died has left. Throws LockedError when another
 * process is building the tree, LockLostError when the lock is lost meanwhile, UnknownAppError and EmptyDatabaseError.
 */
export async function buildTree(database: Database, options: BuildOptions): Promise<AppReport[]> {
  const { out } = options;
  if (options.dryRun) return stageOrRestage(database, options, damageOf(out), () => {});
  let died = false;
  const lock = takeLock(join(out, BUILD_LOCK), () => {
    died = true;
  });
  try {
    const damage = damageOf(out);
    if (damage !== null) resetDamagedTree(out);
    await recover(out, died, lock.check);
    const reports = await stageOrRestage(database, options, damage, lock.check);
    lock.check();
    await emptyTrash(out);
    lock.check();
    reportChanges(out);
    return reports;
  } finally {
    lock.release();
  }
}

/**
 * Builds in full if `damage`, the reason not to trust the tree, is not null, and again if the build finds files that
 * somebody else has changed.
 */
function stageOrRestage(
  database: Database,
  options: BuildOptions,
  damage: string | null,
  check: () => void,
): Promise<AppReport[]> {
  const fullReason = damage ?? (options.full ? "requested by --full" : null);
  return stageTree(database, options, fullReason, check).catch((error: unknown) => {
    if (!(error instanceof ForeignTreeError)) throw error;
    options.onRestart?.(error.message);
    return stageTree(database, options, error.message, check);
  });
}

/** `fullReason` is the reason to build everything, or null. `check` throws once the tree belongs to another build. */
async function stageTree(
  database: Database,
  options: BuildOptions,
  fullReason: string | null,
  check: () => void,
): Promise<AppReport[]> {
  const treeApps = appsOfTree(options.out);
  const buildIds = chooseBuildIds(treeApps);
  const meter = openMeter(options.onProgress);
  const elsewhere = options.elsewhere ?? openElsewhere(options.out, null);
  const stage = openStage({
    out: options.out,
    dryRun: options.dryRun,
    check,
    builtAt: options.now().toISOString(),
    onFile: meter.add,
    onChange: options.onChange ?? (() => {}),
  });
  try {
    const builds = await database.transaction("read", (session) =>
      buildApps(session, stage, { ...options, elsewhere, fullReason, treeApps, buildIds }, meter),
    );
    const read = options.now();
    await stage.settle();
    const reports = builds.map((build) => build());
    if (!options.dryRun) {
      if (stage.hasChanges()) await recordBuild(database, buildIds);
      elsewhere.saveFetched();
      await stage.commit();
      elsewhere.saveReplaced();
    }
    return shareSeconds(reports, (options.now().getTime() - read.getTime()) / 1_000);
  } finally {
    await stage.close();
  }
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

async function buildApps(
  session: Session,
  stage: Stage,
  options: BuildOptions & {
    readonly elsewhere: Elsewhere;
    readonly fullReason: string | null;
    readonly treeApps: readonly TreeApp[];
    readonly buildIds: BuildIds;
  },
  meter: Meter,
): Promise<Ending[]> {
  const { out, now, elsewhere, fullReason, treeApps, buildIds } = options;
  const source = await readSource(session);
  const all = await readApps(session, options);
  refuseEmptyDatabase(all, treeApps, out, source);
  const count = options.onProgress !== undefined;
  const chosen = chooseApps(all, options.apps).map((app) => ({
    app,
    choice: chooseMode(out, app, source, fullReason, elsewhere),
  }));
  const counts = await readCounts(
    session,
    chosen.filter(({ choice }) => choice.mode === "full").map(({ app }) => app.key),
  );
  const since = (start: Date) => now().getTime() - start.getTime();
  const planned: { app: App; choice: BuildMode; plan: AppPlan; start: Date; planning: number }[] = [];
  for (const { app, choice } of chosen) {
    const start = now();
    const plan = await namingFile(app, () => planApp(session, app, choice, counts, { out, count, elsewhere }));
    planned.push({ app, choice, plan, start, planning: since(start) });
  }
  meter.expect(planned.reduce((sum, { plan }) => sum + plan.files, 0));
  const endings: Ending[] = [];
  for (const { app, choice, plan, start, planning } of planned) {
    const staged = stage.openApp(app.key);
    const running = now();
    const counts = await namingFile(app, () => plan.run(staged));
    const seconds = (planning + since(running)) / 1_000;
    const facts = { ...source, ...buildIds, builtAt: start.toISOString(), seconds };
    endings.push(() => endApp(app, choice, plan, staged, counts, facts));
  }
  const removed = options.apps === null ? removedApps(treeApps, all) : [];
  const appFolders = new Set(all.map((app) => segment(app.key)));
  const unknownFolders =
    options.apps === null ? elsewhere.appFolders().filter((folder) => !appFolders.has(folder)) : [];
  for (const folder of unknownFolders) elsewhere.addReplaced(folder);
  for (const { key } of removed) endings.push(await removeApp(stage.openApp(key), out, key));
  return endings;
}

/** Completes the path in a ForeignTreeError, which may be relative to the folder of the app: messages need the whole. */
async function namingFile<T>(app: App, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const folder = `${folderOf(app.key)}/`;
    if (!(error instanceof ForeignTreeError) || error.file.startsWith(folder)) throw error;
    throw new ForeignTreeError(`${folder}${error.file}`);
  }
}
