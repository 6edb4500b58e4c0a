/** Builds one app onto the stage: each type in full or only what has changed, then the schemas and the catalog. */
import { join } from "node:path";
import { folderOf } from "../../shared/address.ts";
import type { App } from "../../shared/catalog.ts";
import type { Session } from "../../shared/database/database.ts";
import type { TreeState } from "../../shared/state.ts";
import { overviewAnswers } from "./answers/answers.ts";
import type { Elsewhere } from "./elsewhere.ts";
import type { BuildMode } from "./mode.ts";
import { isFolder } from "./stage/file.ts";
import { openPutPaths } from "./stage/put-paths.ts";
import type { StagedApp } from "./stage/staged-app.ts";
import {
  type Job,
  planTypeRebuild,
  planTypeUpdate,
  planWholeType,
  removeStaleFiles,
  removeType,
} from "./type-build.ts";
import { openBuiltTree } from "./update/built.ts";
import { readDeltas, type TypeDelta } from "./update/delta.ts";

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
