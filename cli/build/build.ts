/**
 * Builds the tree: what differs from it goes onto a stage out of one snapshot of the database, and when all is there it
 * becomes the tree.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { segment } from "../../shared/address.ts";
import { type AppDefaults, readApps } from "../../shared/apps.ts";
import type { App } from "../../shared/catalog.ts";
import type { Database, Session } from "../../shared/database/database.ts";
import { takeLock } from "../../shared/database/lock.ts";
import { readState, STATE_FOLDER, writeState } from "../../shared/state.ts";
import { appCountsQuery } from "../../shared/tree-query.ts";
import { VERSION } from "../../shared/version.ts";
import { type AppPlan, planApp } from "./app-build.ts";
import { type BuildMode, chooseMode } from "./mode.ts";
import { readSource, type Source, settleSource } from "./source.ts";
import type { Change } from "./stage/changes.ts";
import { filesIn } from "./stage/folder.ts";
import { emptyTrash, recover, tellChanges } from "./stage/publish.ts";
import { openStage, type Stage, type StagedApp } from "./stage/stage.ts";
import { addressIn, ForeignTreeError } from "./update/built.ts";

export type BuildOptions = AppDefaults & {
  readonly out: string;
  /** Keys of the apps to build; null for all. */
  readonly apps: readonly string[] | null;
  /** Computes every answer, whatever is known of the last build. */
  readonly full: boolean;
  readonly dryRun: boolean;
  readonly now: () => Date;
  /** Called as files are done; left out where nobody looks, which saves the counting beforehand. */
  readonly onProgress?: (progress: BuildProgress) => void;
  readonly onChange?: (change: Change) => void;
};

export type BuildProgress = { readonly files: number; readonly totalFiles: number; readonly bytes: number };

export type AppReport = {
  readonly key: string;
  readonly mode: "full" | "incremental" | "removal";
  /** Why in full, or since when. */
  readonly reason: string;
  readonly added: number;
  readonly changed: number;
  /** Added and changed. */
  readonly written: number;
  readonly unchanged: number;
  readonly deleted: number;
  /** Of all files of the app. */
  readonly bytes: number;
  readonly seconds: number;
};

export class UnknownAppError extends Error {
  constructor(keys: readonly string[], known: readonly string[]) {
    super(`No app has the key ${keys.join(", ")}. Apps in the database: ${known.join(", ") || "none"}.`);
    this.name = "UnknownAppError";
  }
}

/** It first finishes what an earlier build had left. */
export async function buildTree(database: Database, options: BuildOptions): Promise<AppReport[]> {
  if (options.dryRun) return stageOrRestage(database, options);
  const { out } = options;
  let died = false;
  const unlock = takeLock(join(out, STATE_FOLDER, "build.lock"), () => {
    died = true;
  });
  try {
    recover(out, died);
    const reports = await stageOrRestage(database, options);
    emptyTrash(out);
    tellChanges(out);
    return reports;
  } finally {
    unlock();
  }
}

/** A tree that somebody else has been at is built in full. */
function stageOrRestage(database: Database, options: BuildOptions): Promise<AppReport[]> {
  return stageTree(database, options).catch((error: unknown) => {
    if (!(error instanceof ForeignTreeError)) throw error;
    return stageTree(database, { ...options, full: true });
  });
}

async function stageTree(database: Database, options: BuildOptions): Promise<AppReport[]> {
  const meter = openMeter(options.onProgress);
  const stage = openStage({
    out: options.out,
    dryRun: options.dryRun,
    builtAt: options.now().toISOString(),
    onFile: meter.add,
    onChange: options.onChange ?? (() => {}),
  });
  try {
    const builds = await database.transaction("read", (session) => buildApps(session, stage, options, meter));
    await stage.settle();
    const reports = builds.map((build) => build());
    if (!options.dryRun) {
      if (stage.isPending()) await settleSource(database);
      stage.commit();
    }
    return reports;
  } finally {
    await stage.close();
  }
}

/** How many entries the types of these apps show, by app and slug. */
async function readCounts(session: Session, keys: readonly string[]): Promise<Map<string, Map<string, number>>> {
  const counts = new Map(keys.map((key) => [key, new Map<string, number>()]));
  if (keys.length === 0) return counts;
  for (const [key, slug, count] of await session.query(appCountsQuery(keys))) {
    counts.get(key as string)?.set(slug as string, Number(count));
  }
  return counts;
}

/** Ends the build of an app when the stage is settled: keeps its state and gives its report. */
type Ending = () => AppReport;

async function buildApps(session: Session, stage: Stage, options: BuildOptions, meter: Meter): Promise<Ending[]> {
  const { out, now } = options;
  const source = await readSource(session);
  const all = await readApps(session, options);
  const count = options.onProgress !== undefined;
  const chosen = chooseApps(all, options.apps).map((app) => ({
    app,
    choice: chooseMode(out, app, source.source, options.full),
  }));
  const counts = await readCounts(
    session,
    chosen.filter(({ choice }) => choice.mode === "full").map(({ app }) => app.key),
  );
  const planned: { app: App; choice: BuildMode; plan: AppPlan; start: Date }[] = [];
  for (const { app, choice } of chosen) {
    const start = now();
    planned.push({ app, choice, plan: await planApp(session, app, choice, counts, { out, count }), start });
  }
  meter.expect(planned.reduce((sum, { plan }) => sum + plan.files, 0));
  const endings: Ending[] = [];
  for (const { app, choice, plan, start } of planned) {
    const staged = stage.openApp(app.key);
    const counts = await plan.run(staged);
    const seconds = (now().getTime() - start.getTime()) / 1_000;
    endings.push(() => endApp(app, choice, plan, staged, counts, { ...source, builtAt: start.toISOString(), seconds }));
  }
  const gone = options.apps === null ? builtApps(out).filter((key) => !all.some((app) => app.key === key)) : [];
  return [...endings, ...gone.map((key) => removeApp(stage.openApp(key), out, key))];
}

type BuildFacts = Source & { readonly builtAt: string; readonly seconds: number };

function endApp(
  app: App,
  choice: BuildMode,
  { pending }: AppPlan,
  { tally, keep }: StagedApp,
  counts: ReadonlyMap<string, number>,
  { builtAt, seconds, source, snapshot }: BuildFacts,
): AppReport {
  const before = choice.mode === "incremental" ? choice.state : null;
  const files = before === null ? tally.looked : before.files + tally.added - tally.gone;
  const bytes = before === null ? tally.size : before.bytes + tally.bytes;
  const entries = [...counts.values()].reduce((sum, some) => sum + some, 0);
  if (pending) {
    const state = { version: VERSION, built_at: builtAt, source, snapshot, files, entries, bytes };
    keep(writeState({ ...state, counts: Object.fromEntries(counts), app }));
  }
  const written = tally.added + tally.changed;
  const { added, changed, gone: deleted } = tally;
  const { mode, reason } = choice;
  return { key: app.key, mode, reason, added, changed, written, unchanged: files - written, deleted, bytes, seconds };
}

/** An app that the tree has and the database has no more. */
function removeApp({ tally, keep, remove }: StagedApp, out: string, key: string): Ending {
  const folder = segment(key);
  for (const file of filesIn(join(out, folder))) {
    remove(`${folder}/${file}`, file.startsWith("v1/") ? addressIn(join(out, folder, "v1"), file.slice(3)) : null);
  }
  keep(null);
  const reason = "the database has no such app any more";
  const nothing = { added: 0, changed: 0, written: 0, unchanged: 0, bytes: 0, seconds: 0 };
  return () => ({ key, mode: "removal", reason, ...nothing, deleted: tally.gone });
}

/** The apps of these keys, or all. Throws UnknownAppError for a key that no app has. */
export function chooseApps(all: readonly App[], keys: readonly string[] | null): readonly App[] {
  if (keys === null) return all;
  const known = all.map((app) => app.key);
  const unknown = keys.filter((key) => !known.includes(key));
  if (unknown.length > 0) throw new UnknownAppError(unknown, known);
  return all.filter((app) => keys.includes(app.key));
}

/** Counts what is done against what is to be done. */
type Meter = { readonly expect: (files: number) => void; readonly add: (bytes: number) => void };

function openMeter(onProgress: BuildOptions["onProgress"]): Meter {
  let [files, totalFiles, bytes] = [0, 0, 0];
  const add = (size: number) => {
    files += 1;
    bytes += size;
    onProgress?.({ files, totalFiles, bytes });
  };
  return {
    expect: (expected) => {
      totalFiles = expected;
    },
    add,
  };
}

/** The keys of the apps that a tree has, in byte order. */
export function builtApps(out: string): string[] {
  const folder = join(out, STATE_FOLDER);
  if (!existsSync(folder)) return [];
  const states = readdirSync(folder).filter((name) => /^[shx]-.*\.json$/.test(name));
  const keys = states.map((name) => readState(readFileSync(join(folder, name), "utf8"))?.app.key);
  return keys.filter((key) => key !== undefined).sort();
}
