/** Builds one app onto the stage: each type in full or only what has changed, then the schemas and the catalog. */
import { join } from "node:path";
import { folderOf } from "../../shared/api/address.ts";
import type { App, ContentType } from "../../shared/api/catalog.ts";
import type { Session } from "../../shared/database/database.ts";
import { filesIn, isFolder, yieldToEventLoop } from "../../shared/files.ts";
import { countQuery } from "../../shared/sql/tree.ts";
import { addressIn, type TreeState } from "../../shared/tree.ts";
import { countTypeFiles, overviewAnswers, typeAnswers } from "./answers.ts";
import { type BuiltTree, openBuiltTree } from "./built.ts";
import { type BuildMode, readDeltas, type TypeDelta } from "./delta.ts";
import type { Elsewhere } from "./remote.ts";
import { openPutPaths, type PutPaths, type StagedApp } from "./stage.ts";
import { planUpdate } from "./update.ts";

export type AppPlan = {
  /** Number of files that the build processes. Without `PlanOptions.count`, types that are built anew are left out. */
  readonly files: number;
  /** False when the app's files and state are up to date. */
  readonly isOutdated: boolean;
  /** Stages the files. Resolves with the number of entries by type slug. */
  readonly run: (staged: StagedApp) => Promise<ReadonlyMap<string, number>>;
};

export type PlanOptions = {
  readonly out: string;
  /** Counts the files of types that are built anew, which takes queries. */
  readonly count: boolean;
  readonly elsewhere: Elsewhere;
};

/** `counts` holds the numbers of entries by type slug, if the app is built in full. */
export async function planApp(
  session: Session,
  app: App,
  choice: BuildMode,
  counts: ReadonlyMap<string, number> | undefined,
  options: PlanOptions,
): Promise<AppPlan> {
  if (choice.mode === "incremental") return planChanges(session, app, choice.state, options);
  return planFull(session, app, new Map(app.types.map(({ slug }) => [slug, counts?.get(slug) ?? 0])), options);
}

async function planFull(
  session: Session,
  app: App,
  counts: ReadonlyMap<string, number>,
  { out, count, elsewhere }: PlanOptions,
): Promise<AppPlan> {
  elsewhere.addReplaced(folderOf(app.key));
  const compare = isFolder(join(out, folderOf(app.key)));
  const jobs: Job[] = [];
  for (const type of app.types) {
    jobs.push(await planWholeType(session, app, type, counts.get(type.slug) ?? 0, { compare, count }));
  }
  const run = async (staged: StagedApp) => {
    const putPaths = compare ? openPutPaths() : null;
    for (const job of jobs) await job.run(staged, putPaths);
    const overview = overviewAnswers(app, counts);
    await staged.put(overview, compare, putPaths);
    if (putPaths !== null) await removeStaleFiles(staged, out, app, "", putPaths);
    return counts;
  };
  return { files: sumFiles(jobs) + app.types.length + 1, isOutdated: true, run };
}

async function planChanges(
  session: Session,
  app: App,
  state: TreeState,
  { out, count, elsewhere }: PlanOptions,
): Promise<AppPlan> {
  const root = folderOf(app.key);
  const deltas = await readDeltas(session, app, state);
  const removedTypes = state.app.types.filter(({ slug }) => !app.types.some((type) => type.slug === slug));
  const jobs: Job[] = [];
  for (const type of app.types) {
    const delta = deltas.get(type.slug) as TypeDelta;
    if (delta.kind === "anew") {
      await elsewhere.fetchBelow(`${root}/${type.slug}`);
      jobs.push(await planTypeRebuild(session, app, type, { out, count }));
    }
    if (delta.kind === "entries") {
      jobs.push(
        await planTypeUpdate(session, app, type, delta.ids, state, openBuiltTree(out, app.key, elsewhere.fetchFiles)),
      );
    }
  }
  for (const { slug } of removedTypes) await elsewhere.fetchBelow(`${root}/${slug}`);
  const isOutdated = jobs.length > 0 || JSON.stringify(app) !== JSON.stringify(state.app);
  // The build compares the catalog and all schemas with their files, and deletes the schemas of removed types.
  if (isOutdated) await elsewhere.fetchFiles([`${root}/_schemas.json`]);
  if (isOutdated) await elsewhere.fetchBelow(`${root}/_schemas`);
  const run = async (staged: StagedApp) => {
    for (const job of jobs) await job.run(staged, null);
    const totals = new Map(jobs.map(({ type, total }) => [type.slug, total]));
    const counts = new Map(app.types.map(({ slug }) => [slug, totals.get(slug) ?? state.counts[slug] ?? 0]));
    if (isOutdated) await staged.put(overviewAnswers(app, counts), true);
    for (const { slug } of removedTypes) await removeType(staged, out, app, slug);
    return counts;
  };
  return { files: sumFiles(jobs) + (isOutdated ? app.types.length + 1 : 0), isOutdated, run };
}

function sumFiles(jobs: readonly Job[]): number {
  return jobs.reduce((sum, { files }) => sum + files, 0);
}

// Builds one content type onto the stage, in full or what has changed, and removes files that it no longer has.

/** The work for one type. */
type Job = {
  readonly type: ContentType;
  readonly total: number;
  readonly files: number;
  readonly run: (staged: StagedApp, putPaths: PutPaths | null) => Promise<void>;
};

/** Plans a type that is built anew by an incremental build, which may leave other types as they are. */
async function planTypeRebuild(
  session: Session,
  app: App,
  type: ContentType,
  { out, count }: { readonly out: string; readonly count: boolean },
): Promise<Job> {
  const total = Number((await session.query(countQuery(app.key, type.slug)))[0]?.[0]);
  const compare = isFolder(join(out, folderOf(app.key), type.slug));
  const job = await planWholeType(session, app, type, total, { compare, count });
  const run = async (staged: StagedApp) => {
    const putPaths = compare ? openPutPaths() : null;
    await job.run(staged, putPaths);
    if (putPaths !== null) await removeStaleFiles(staged, out, app, type.slug, putPaths);
  };
  return { ...job, run };
}

async function planWholeType(
  session: Session,
  app: App,
  type: ContentType,
  total: number,
  { compare, count }: { readonly compare: boolean; readonly count: boolean },
): Promise<Job> {
  const files = count ? await countTypeFiles(session, app, type, total) : 0;
  const run = async (staged: StagedApp, putPaths: PutPaths | null) => {
    for await (const answers of typeAnswers(session, app, type, total)) await staged.put(answers, compare, putPaths);
  };
  return { type, total, files, run };
}

async function planTypeUpdate(
  session: Session,
  app: App,
  type: ContentType,
  ids: readonly string[],
  state: TreeState,
  built: BuiltTree,
): Promise<Job> {
  const before = state.counts[type.slug] ?? 0;
  const { total, files, rewrites } = await planUpdate(session, app, type, built, ids, before);
  const run = async (staged: StagedApp) => {
    for await (const some of rewrites()) await staged.put(some, true);
  };
  return { type, total, files, run };
}

/** Removes the files for which no answer was put. `below` is a folder of the app, or "" for all of it. */
async function removeStaleFiles(
  staged: StagedApp,
  out: string,
  app: App,
  below: string,
  putPaths: PutPaths,
): Promise<void> {
  for await (const file of filesIn(join(out, folderOf(app.key)), below)) {
    if (!putPaths.has(file)) removeFile(staged, out, app, file);
    await yieldToEventLoop();
  }
}

async function removeType(staged: StagedApp, out: string, app: App, slug: string): Promise<void> {
  for await (const file of filesIn(join(out, folderOf(app.key)), slug)) {
    removeFile(staged, out, app, file);
    await yieldToEventLoop();
  }
  removeFile(staged, out, app, `_schemas/${slug}.json`);
}

function removeFile(staged: StagedApp, out: string, app: App, file: string): void {
  const root = folderOf(app.key);
  staged.remove(`${root}/${file}`, addressIn(join(out, root), file));
}

// Counts what a build has done against what it has to do.

/** Number of files done, number of files in all, and size of the files done in bytes. */
export type FileProgress = { readonly done: number; readonly total: number; readonly bytes: number };

export type Meter = { readonly expect: (files: number) => void; readonly add: (bytes: number) => void };

export function openMeter(onProgress: ((progress: FileProgress) => void) | undefined): Meter {
  let [done, total, bytes] = [0, 0, 0];
  const add = (size: number) => {
    done += 1;
    bytes += size;
    onProgress?.({ done, total, bytes });
  };
  return {
    expect: (expected) => {
      total = expected;
    },
    add,
  };
}
