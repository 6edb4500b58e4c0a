/** Builds the tree: every free answer of every app out of one snapshot of the database, and the state beside it. */
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileOf, folderOf } from "../../shared/address.ts";
import { type AppDefaults, readApps } from "../../shared/apps.ts";
import type { App } from "../../shared/catalog.ts";
import { type Database, type Session, sql } from "../../shared/database/database.ts";
import { takeLock } from "../../shared/database/lock.ts";
import { readState, STATE_FOLDER, stateFileOf, type TreeState, writeState } from "../../shared/state.ts";
import { freeAnswers } from "./answers.ts";
import { type FolderReport, filesIn, openFolder, writeWhole } from "./folder.ts";
import { countFiles } from "./totals.ts";

export type BuildOptions = AppDefaults & {
  readonly out: string;
  /** Keys of the apps to build; null for all. */
  readonly apps: readonly string[] | null;
  readonly dryRun: boolean;
  readonly now: () => Date;
  /** Called as files are done; left out where nobody looks, which saves the counting beforehand. */
  readonly onProgress?: (progress: BuildProgress) => void;
};

export type BuildProgress = { readonly files: number; readonly totalFiles: number; readonly bytes: number };

export type AppReport = FolderReport & {
  readonly key: string;
  readonly seconds: number;
  readonly changes: { readonly written: readonly string[]; readonly deleted: readonly string[] };
};

export class UnknownAppError extends Error {
  constructor(keys: readonly string[], known: readonly string[]) {
    super(`No app has the key ${keys.join(", ")}. Apps in the database: ${known.join(", ") || "none"}.`);
    this.name = "UnknownAppError";
  }
}

export async function buildTree(database: Database, options: BuildOptions): Promise<AppReport[]> {
  const unlock = options.dryRun ? () => {} : takeLock(join(options.out, STATE_FOLDER, "build.lock"));
  try {
    return await database.transaction("read", async (session) => {
      const all = await readApps(session, options);
      const apps = chooseApps(all, options.apps);
      const reports: AppReport[] = [];
      const meter = await openMeter(session, apps, options.onProgress);
      for (const app of apps) reports.push(await buildApp(session, app, options, meter));
      if (options.apps === null) reports.push(...removeVanished(all, options));
      return reports;
    });
  } finally {
    unlock();
  }
}

/** The apps of these keys, or all. Throws UnknownAppError for a key that no app has. */
export function chooseApps(all: readonly App[], keys: readonly string[] | null): readonly App[] {
  if (keys === null) return all;
  const known = all.map((app) => app.key);
  const unknown = keys.filter((key) => !known.includes(key));
  if (unknown.length > 0) throw new UnknownAppError(unknown, known);
  return all.filter((app) => keys.includes(app.key));
}

type Meter = (bytes: number) => void;

async function openMeter(
  session: Session,
  apps: readonly App[],
  onProgress: BuildOptions["onProgress"],
): Promise<Meter> {
  if (onProgress === undefined) return () => {};
  let totalFiles = 0;
  for (const app of apps) totalFiles += await countFiles(session, app);
  let files = 0;
  let bytes = 0;
  return (size) => {
    files += 1;
    bytes += size;
    onProgress({ files, totalFiles, bytes });
  };
}

async function buildApp(session: Session, app: App, options: BuildOptions, meter: Meter): Promise<AppReport> {
  const start = options.now();
  const folder = openFolder(join(options.out, folderOf(app.key)), options.dryRun);
  const snapshot = await session.query(sql("SELECT pg_current_snapshot()::text"));
  let entries = 0;
  for await (const batch of freeAnswers(session, app)) {
    for (const { address, body } of batch) {
      if (address.kind === "entry") entries += 1;
      folder.write(fileOf(address), body);
      meter(body.length);
    }
  }
  const { written, unchanged, bytes } = folder.report();
  const state = {
    built_at: start.toISOString(),
    snapshot: snapshot[0]?.[0] ?? "",
    files: written + unchanged,
    entries,
    bytes,
    app,
  };
  if (!options.dryRun) keepState(options.out, state);
  folder.sweep();
  const seconds = (options.now().getTime() - start.getTime()) / 1_000;
  return { key: app.key, ...folder.report(), seconds, changes: folder.changes };
}

/** The server reads the state to know an app's types: it comes after the files it speaks of and before they go. */
function keepState(out: string, state: TreeState): void {
  writeWhole(join(out, stateFileOf(state.app.key)), writeState(state), new Set());
}

/** Apps that the tree has and the database has no more. */
function removeVanished(all: readonly App[], { out, dryRun }: BuildOptions): AppReport[] {
  const keys = builtApps(out).filter((key) => !all.some((app) => app.key === key));
  return keys.map((key) => {
    const root = join(out, folderOf(key));
    const deleted = [...filesIn(root)];
    if (!dryRun) {
      rmSync(join(out, stateFileOf(key)), { force: true });
      rmSync(join(root, ".."), { recursive: true, force: true });
    }
    return {
      key,
      written: 0,
      unchanged: 0,
      deleted: deleted.length,
      bytes: 0,
      seconds: 0,
      changes: { written: [], deleted },
    };
  });
}

/** The keys of the apps that a tree has, in byte order. */
export function builtApps(out: string): string[] {
  const folder = join(out, STATE_FOLDER);
  if (!existsSync(folder)) return [];
  const states = readdirSync(folder).filter((name) => name.endsWith(".json"));
  const keys = states.map((name) => readState(readFileSync(join(folder, name), "utf8"))?.app.key);
  return keys.filter((key) => key !== undefined).sort();
}
