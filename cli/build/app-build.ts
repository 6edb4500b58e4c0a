/** Builds one app onto the stage: each type in full or only what has changed, then the schemas and the catalog. */
import { join } from "node:path";
import { folderOf } from "../../shared/address.ts";
import type { App, ContentType } from "../../shared/catalog.ts";
import type { Session } from "../../shared/database/database.ts";
import { countQuery } from "../../shared/sql/tree-query.ts";
import type { TreeState } from "../../shared/state.ts";
import { overviewAnswers, typeAnswers } from "./answers/answers.ts";
import { countTypeFiles } from "./answers/totals.ts";
import type { Elsewhere } from "./elsewhere.ts";
import type { BuildMode } from "./mode.ts";
import { breathe } from "./stage/breath.ts";
import { filesIn, isFolder } from "./stage/folder.ts";
import { type Kept, openKept } from "./stage/kept.ts";
import type { StagedApp } from "./stage/staged-app.ts";
import { addressIn, type BuiltTree, openBuilt } from "./update/built.ts";
import { readDeltas, type TypeDelta } from "./update/delta.ts";
import { planUpdate } from "./update/update.ts";

export type AppPlan = {
  /** Number of files that the build processes. Without `PlanOptions.count`, types that are built anew are left out. */
  readonly files: number;
  /** False when the app's files and state are up to date. */
  readonly pending: boolean;
  /** Stages the files. Resolves with the number of entries by type slug. */
  readonly run: (staged: StagedApp) => Promise<ReadonlyMap<string, number>>;
};

/** The work for one type. */
type Job = {
  readonly type: ContentType;
  readonly total: number;
  readonly files: number;
  readonly run: (staged: StagedApp, kept: Kept | null) => Promise<void>;
};

export type PlanOptions = {
  readonly out: string;
  /** Counts the files of types that are built anew, which takes queries. */
  readonly count: boolean;
  readonly elsewhere: Elsewhere;
};

/** `counts` holds the numbers of entries of the apps that are built in full, by app key and slug. */
export async function planApp(
  session: Session,
  app: App,
  choice: BuildMode,
  counts: ReadonlyMap<string, ReadonlyMap<string, number>>,
  options: PlanOptions,
): Promise<AppPlan> {
  if (choice.mode === "incremental") return planChanges(session, app, choice.state, options);
  return planFull(
    session,
    app,
    new Map(app.types.map(({ slug }) => [slug, counts.get(app.key)?.get(slug) ?? 0])),
    options,
  );
}

async function planFull(
  session: Session,
  app: App,
  counts: ReadonlyMap<string, number>,
  { out, count, elsewhere }: PlanOptions,
): Promise<AppPlan> {
  elsewhere.replace(folderOf(app.key));
  const compare = isFolder(join(out, folderOf(app.key)));
  const jobs: Job[] = [];
  for (const type of app.types) {
    jobs.push(await planAnew(session, app, type, counts.get(type.slug) ?? 0, { compare, count }));
  }
  const run = async (staged: StagedApp) => {
    const kept = compare ? openKept() : null;
    for (const job of jobs) await job.run(staged, kept);
    const overview = overviewAnswers(app, counts);
    await staged.put(overview, compare, kept);
    if (kept !== null) await sweep(staged, out, app, "", kept);
    return counts;
  };
  return { files: sumFiles(jobs) + app.types.length + 1, pending: true, run };
}

async function planChanges(
  session: Session,
  app: App,
  state: TreeState,
  { out, count, elsewhere }: PlanOptions,
): Promise<AppPlan> {
  const root = folderOf(app.key);
  const deltas = await readDeltas(session, app, state);
  const gone = state.app.types.filter(({ slug }) => !app.types.some((type) => type.slug === slug));
  const jobs: Job[] = [];
  for (const type of app.types) {
    const delta = deltas.get(type.slug) as TypeDelta;
    if (delta.kind === "anew") {
      await elsewhere.bringBelow(`${root}/${type.slug}`);
      jobs.push(await planRenewal(session, app, type, { out, count }));
    }
    if (delta.kind === "entries") {
      jobs.push(await planEdits(session, app, type, delta.ids, state, openBuilt(out, app.key, elsewhere.bring)));
    }
  }
  for (const { slug } of gone) await elsewhere.bringBelow(`${root}/${slug}`);
  const pending = jobs.length > 0 || JSON.stringify(app) !== JSON.stringify(state.app);
  // The build compares the catalog and all schemas with their files, and deletes the schemas of removed types.
  if (pending) await elsewhere.bring([`${root}/_schemas.json`]);
  if (pending) await elsewhere.bringBelow(`${root}/_schemas`);
  const run = async (staged: StagedApp) => {
    for (const job of jobs) await job.run(staged, null);
    const totals = new Map(jobs.map(({ type, total }) => [type.slug, total]));
    const counts = new Map(app.types.map(({ slug }) => [slug, totals.get(slug) ?? state.counts[slug] ?? 0]));
    if (pending) await staged.put(overviewAnswers(app, counts), true);
    for (const { slug } of gone) await removeType(staged, out, app, slug);
    return counts;
  };
  return { files: sumFiles(jobs) + (pending ? app.types.length + 1 : 0), pending, run };
}

/** Plans a type that is built anew by an incremental build, which may leave other types as they are. */
async function planRenewal(
  session: Session,
  app: App,
  type: ContentType,
  { out, count }: Pick<PlanOptions, "out" | "count">,
): Promise<Job> {
  const total = Number((await session.query(countQuery(app.key, type.slug)))[0]?.[0]);
  const compare = isFolder(join(out, folderOf(app.key), type.slug));
  const job = await planAnew(session, app, type, total, { compare, count });
  const run = async (staged: StagedApp) => {
    const kept = compare ? openKept() : null;
    await job.run(staged, kept);
    if (kept !== null) await sweep(staged, out, app, type.slug, kept);
  };
  return { ...job, run };
}

async function planAnew(
  session: Session,
  app: App,
  type: ContentType,
  total: number,
  { compare, count }: { readonly compare: boolean; readonly count: boolean },
): Promise<Job> {
  const files = count ? await countTypeFiles(session, app, type, total) : 0;
  const run = async (staged: StagedApp, kept: Kept | null) => {
    for await (const answers of typeAnswers(session, app, type, total)) await staged.put(answers, compare, kept);
  };
  return { type, total, files, run };
}

async function planEdits(
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

function sumFiles(jobs: readonly Job[]): number {
  return jobs.reduce((sum, { files }) => sum + files, 0);
}

/** Removes the files for which no answer was put. `below` is a folder of the app, or "" for all of it. */
async function sweep(staged: StagedApp, out: string, app: App, below: string, kept: Kept): Promise<void> {
  for (const file of filesIn(join(out, folderOf(app.key)), below)) {
    if (!kept.has(file)) removeFile(staged, out, app, file);
    await breathe();
  }
}

async function removeType(staged: StagedApp, out: string, app: App, slug: string): Promise<void> {
  for (const file of filesIn(join(out, folderOf(app.key)), slug)) {
    removeFile(staged, out, app, file);
    await breathe();
  }
  removeFile(staged, out, app, `_schemas/${slug}.json`);
}

function removeFile(staged: StagedApp, out: string, app: App, file: string): void {
  const root = folderOf(app.key);
  staged.remove(`${root}/${file}`, addressIn(join(out, root), file));
}
