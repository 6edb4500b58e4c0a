/** Builds one content type onto the stage, in full or what has changed, and removes files that it no longer has. */
import { join } from "node:path";
import { folderOf } from "../../shared/address.ts";
import type { App, ContentType } from "../../shared/catalog.ts";
import type { Session } from "../../shared/database/database.ts";
import { countQuery } from "../../shared/sql/tree-query.ts";
import type { TreeState } from "../../shared/state.ts";
import { typeAnswers } from "./answers/answers.ts";
import { countTypeFiles } from "./answers/totals.ts";
import { yieldToEventLoop } from "./stage/event-loop.ts";
import { isFolder } from "./stage/file.ts";
import { filesIn } from "./stage/folder.ts";
import { openPutPaths, type PutPaths } from "./stage/put-paths.ts";
import type { StagedApp } from "./stage/staged-app.ts";
import { addressIn, type BuiltTree } from "./update/built.ts";
import { planUpdate } from "./update/update.ts";

/** The work for one type. */
export type Job = {
  readonly type: ContentType;
  readonly total: number;
  readonly files: number;
  readonly run: (staged: StagedApp, putPaths: PutPaths | null) => Promise<void>;
};

/** Plans a type that is built anew by an incremental build, which may leave other types as they are. */
export async function planTypeRebuild(
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

export async function planWholeType(
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

export async function planTypeUpdate(
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
export async function removeStaleFiles(
  staged: StagedApp,
  out: string,
  app: App,
  below: string,
  putPaths: PutPaths,
): Promise<void> {
  for (const file of filesIn(join(out, folderOf(app.key)), below)) {
    if (!putPaths.has(file)) removeFile(staged, out, app, file);
    await yieldToEventLoop();
  }
}

export async function removeType(staged: StagedApp, out: string, app: App, slug: string): Promise<void> {
  for (const file of filesIn(join(out, folderOf(app.key)), slug)) {
    removeFile(staged, out, app, file);
    await yieldToEventLoop();
  }
  removeFile(staged, out, app, `_schemas/${slug}.json`);
}

function removeFile(staged: StagedApp, out: string, app: App, file: string): void {
  const root = folderOf(app.key);
  staged.remove(`${root}/${file}`, addressIn(join(out, root), file));
}
