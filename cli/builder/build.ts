/**
 * Builds the tree: reads one snapshot of the database, writes the files that differ to a stage beside the tree, and
 * moves them into the tree when all are there.
 */
import { randomUUID } from "node:crypto";
import { appendFileSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { AppDefaults } from "../../shared/apps.ts";
import type { Database } from "../../shared/database/database.ts";
import { exists, isFolder, removeEmpty } from "../../shared/files.ts";
import { takeLock } from "../../shared/lock.ts";
import {
  appsOfTree,
  BUILD_LOCK,
  type BuildIds,
  CHANGES_FILE,
  ELSEWHERE_FILE,
  recordBuild,
  STATE_FOLDER,
  stateFilesIn,
  type TreeApp,
  topFolderOf,
} from "../../shared/tree.ts";
import { type FileProgress, openMeter } from "./app.ts";
import { ForeignTreeError } from "./built.ts";
import { type Change, isWholeList } from "./changes.ts";
import { CARRIED, READY, recover, reportChanges, STAGED_STATES } from "./publish.ts";
import { type Elsewhere, openElsewhere, readElsewhere, writeOthers } from "./remote.ts";
import { type AppReport, shareSeconds } from "./report.ts";
import { buildApps } from "./snapshot.ts";
import { openStage } from "./stage.ts";
import { emptyTrash } from "./trash.ts";

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
    if (damage !== null) await resetDamagedTree(out);
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
  const count = options.onProgress !== undefined;
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
    const { endings, others } = await database.transaction("read", (session) =>
      buildApps(session, stage, { ...options, count, elsewhere, fullReason, treeApps, buildIds }, meter),
    );
    const read = options.now();
    await stage.settle();
    const reports = endings.map((end) => end());
    if (!options.dryRun) {
      if (stage.hasChanges()) await recordBuild(database, buildIds);
      elsewhere.saveFetched();
      // If the process dies in between, the tree counts as one that lacks apps, and a deploy deletes too little.
      if (others.length > 0) writeOthers(options.out, others);
      await stage.commit();
      elsewhere.saveReplaced();
      if (others.length === 0) writeOthers(options.out, others);
    }
    return shareSeconds(reports, (options.now().getTime() - read.getTime()) / 1_000);
  } finally {
    await stage.close();
  }
}

// Chooses the UUIDs with which the database records a build: of the tree, of this build and of earlier builds.

function chooseBuildIds(treeApps: readonly TreeApp[]): BuildIds {
  const states = treeApps.flatMap(({ state }) => state ?? []);
  const earlierMarks = [...new Set(states.map(({ mark }) => mark))];
  return { tree: states[0]?.tree ?? randomUUID(), mark: randomUUID(), earlierMarks };
}

// Handles a list that a power failure has damaged: the tree cannot be trusted then. The states of all its apps are
// emptied, so that the server answers live, deploys refuse the tree, and this build or a later one builds each app in
// full.

/** Why the tree cannot be trusted; null when it can. */
function damageOf(out: string): string | null {
  const list = join(out, READY, CHANGES_FILE);
  if (exists(list) && !isWholeList(list)) return "the list of changes of an interrupted build cannot be read";
  return readElsewhere(out) === null
    ? "the list of its files that exist only at the deploy target cannot be read"
    : null;
}

/** Empties the states before it removes the lists: if the process dies here, the tree is still not trusted. */
async function resetDamagedTree(out: string): Promise<void> {
  const [folder, ready] = [join(out, STATE_FOLDER), join(out, READY)];
  for (const name of [folder, join(ready, STAGED_STATES)].flatMap(stateFilesIn)) {
    writeFileSync(join(folder, name), "");
    // The build that died may have deleted the last file of a folder, but not the folder.
    const appFolder = join(out, topFolderOf(name));
    if (isFolder(appFolder)) await removeEmpty(appFolder);
  }
  carryOver(join(ready, CHANGES_FILE), join(out, CARRIED));
  if (readElsewhere(out) === null) rmSync(join(folder, ELSEWHERE_FILE));
}

/** Keeps the changes of a damaged list for the next report: some may be in place, and none was reported. */
function carryOver(list: string, carried: string): void {
  if (!exists(list)) return;
  appendFileSync(carried, Buffer.concat([Buffer.from("\n"), readFileSync(list)]));
  rmSync(list);
}
