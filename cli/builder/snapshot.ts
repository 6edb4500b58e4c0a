/** Builds the apps of one snapshot onto the stage: plans all of them first, then runs one after the other. */
import { folderOf, segment } from "../../shared/api/address.ts";
import type { App } from "../../shared/api/catalog.ts";
import { type AppDefaults, readApps } from "../../shared/apps.ts";
import type { Session } from "../../shared/database/database.ts";
import { appCountsQuery } from "../../shared/sql/tree.ts";
import {
  type BuildIds,
  chooseApps,
  readSource,
  refuseEmptyDatabase,
  removedApps,
  type Source,
  type TreeApp,
} from "../../shared/tree.ts";
import { type AppPlan, type Meter, type PlanOptions, planApp } from "./app.ts";
import { ForeignTreeError } from "./built.ts";
import { type BuildMode, chooseMode } from "./delta.ts";
import { othersOf } from "./remote.ts";
import { type Ending, endApp, removeApp } from "./report.ts";
import type { Stage } from "./stage.ts";

type AppsBuildOptions = AppDefaults &
  PlanOptions & {
    /** Keys of the apps to build; null for all. */
    readonly apps: readonly string[] | null;
    /** The reason to build everything; null when there is none. */
    readonly fullReason: string | null;
    /** The apps that the tree has. */
    readonly treeApps: readonly TreeApp[];
    readonly buildIds: BuildIds;
    readonly now: () => Date;
  };

type PlannedApp = {
  readonly app: App;
  readonly choice: BuildMode;
  readonly plan: AppPlan;
  readonly start: Date;
  /** Milliseconds that planning took. */
  readonly planning: number;
};

/** Builds onto the stage. `others` are the keys of the apps that the tree lacks after the build. */
type AppBuilds = { readonly endings: readonly Ending[]; readonly others: readonly string[] };

/** Throws UnknownAppError, EmptyDatabaseError, and ForeignTreeError for files that somebody else has changed. */
export async function buildApps(
  session: Session,
  stage: Stage,
  options: AppsBuildOptions,
  meter: Meter,
): Promise<AppBuilds> {
  const source = await readSource(session);
  const all = await readApps(session, options);
  refuseEmptyDatabase(all, options.treeApps, options.out, source);
  const chosen = chooseApps(all, options.apps);
  const planned = await planApps(session, chosen, source, options);
  meter.expect(planned.reduce((sum, { plan }) => sum + plan.files, 0));
  const endings: Ending[] = [];
  for (const one of planned) endings.push(await runPlan(one, stage, source, options));
  if (options.apps === null) endings.push(...(await removeOthers(all, stage, options)));
  return { endings, others: othersOf(all, chosen, options.treeApps) };
}

async function planApps(
  session: Session,
  apps: readonly App[],
  source: Source,
  options: AppsBuildOptions,
): Promise<PlannedApp[]> {
  const { out, now, elsewhere, fullReason } = options;
  const chosen = apps.map((app) => ({ app, choice: chooseMode(out, app, source, fullReason, elsewhere) }));
  const full = chosen.filter(({ choice }) => choice.mode === "full");
  const counts = await readCounts(
    session,
    full.map(({ app }) => app.key),
  );
  const planned: PlannedApp[] = [];
  for (const { app, choice } of chosen) {
    const start = now();
    const plan = await namingFile(app, () => planApp(session, app, choice, counts.get(app.key), options));
    planned.push({ app, choice, plan, start, planning: now().getTime() - start.getTime() });
  }
  return planned;
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

async function runPlan(
  { app, choice, plan, start, planning }: PlannedApp,
  stage: Stage,
  source: Source,
  { buildIds, now }: AppsBuildOptions,
): Promise<Ending> {
  const staged = stage.openApp(app.key);
  const running = now();
  const counts = await namingFile(app, () => plan.run(staged));
  const seconds = (planning + now().getTime() - running.getTime()) / 1_000;
  const facts = { ...source, ...buildIds, builtAt: start.toISOString(), seconds };
  return () => endApp(app, choice, plan, staged, counts, facts);
}

/** Removes from the tree what belongs to none of all apps. */
async function removeOthers(
  all: readonly App[],
  stage: Stage,
  { out, elsewhere, treeApps }: AppsBuildOptions,
): Promise<Ending[]> {
  const folders = new Set(all.map((app) => segment(app.key)));
  for (const folder of elsewhere.appFolders()) {
    if (!folders.has(folder)) elsewhere.addReplaced(folder);
  }
  const endings: Ending[] = [];
  for (const { key } of removedApps(treeApps, all)) endings.push(await removeApp(stage.openApp(key), out, key));
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
