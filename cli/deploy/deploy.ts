/**
 * Brings a store to what the tree is: what differs is uploaded, then the manifest is replaced, then what is gone is
 * deleted. It can be interrupted anywhere: the next deploy knows from the journal what to look at again.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { tagsOf } from "../../shared/tags.ts";
import { type Before, readBefore, type Wanted } from "./before.ts";
import type { Hold } from "./hold.ts";
import { JOURNAL, type Journal, unpurgedIn, writeJournal } from "./journal.ts";
import { type LocalTree, markOf, scanTree, UnfinishedTreeError } from "./local-tree.ts";
import { MANIFEST, writeManifest } from "./manifest.ts";
import { isEmpty, type Plan, type PlannedFile, planDeploy } from "./plan.ts";
import { sideBySide } from "./side-by-side.ts";
import { type FileHeaders, PRIVATE_HEADERS, type Store } from "./store.ts";
import type { Target } from "./target.ts";
import { byFolder, describeTreeFile, isStatePath, ownerOf, type TreeFile } from "./tree-file.ts";

export type DeployOptions = Wanted & {
  readonly out: string;
  readonly dryRun: boolean;
  /** More files than this are not deleted, unless forced. */
  readonly maxDelete: number;
  readonly concurrency: number;
  /** Throws when the process is told to stop. */
  readonly permit: () => void;
  readonly onProgress?: ((progress: { files: number; totalFiles: number; bytes: number }) => void) | undefined;
  readonly onPlan?: ((plan: Plan) => void) | undefined;
  /** Has a CDN forget; left out where there is none. What it was not told of is told to the next deploy's. */
  readonly purge?: ((changed: readonly TreeFile[]) => Promise<number>) | undefined;
};

export type Deployed = {
  /** Of the store's manifest. */
  readonly generation: number;
  readonly written: number;
  readonly unchanged: number;
  readonly deleted: number;
  /** That were uploaded. */
  readonly bytes: number;
  /** False where two deploys at once are not kept apart; null in a dry run, which does not try. */
  readonly conditional: boolean | null;
  /** Requests that it took to have a CDN forget; null where none was told. */
  readonly purges: number | null;
  /** What clients may see to have changed. */
  readonly changed: readonly TreeFile[];
  readonly tree: LocalTree;
};

/** It failed; the message says how far it came. */
export class DeployError extends Error {
  constructor(cause: unknown, standing: string) {
    super(`${cause instanceof Error ? cause.message : String(cause)}\n${standing}`, { cause });
    this.name = "DeployError";
  }
}

/** Throws UnfinishedTreeError, DeployLockedError, UnreadableStoreError, RemoteFault or DeployError. */
export async function deployTree({ store, hold }: Target, options: DeployOptions): Promise<Deployed> {
  const tree = scanTree(options.out);
  if (options.dryRun) return look(store, tree, options);
  const held = await hold();
  try {
    return await deployHeld(store, held, tree, options);
  } finally {
    // A lock that can't be given back ends by itself.
    await held.release().catch(() => {});
  }
}

async function look(store: Store, tree: LocalTree, options: DeployOptions): Promise<Deployed> {
  const before = await readBefore(store, options);
  const plan = planDeploy(tree.files, before);
  options.onPlan?.(plan);
  const generation = before.manifest?.generation ?? 0;
  return { ...reportOf(plan, tree, before, options), generation, conditional: null, purges: null };
}

async function deployHeld(store: Store, held: Hold, tree: LocalTree, options: DeployOptions): Promise<Deployed> {
  const before = await readBefore(store, options);
  const plan = planDeploy(tree.files, before);
  refuseAbsent(plan, tree, options, store);
  refuseDeletions(plan, options);
  options.onPlan?.(plan);
  const changes = !isEmpty(plan);
  const generation = (before.manifest?.generation ?? 0) + (changes ? 1 : 0);
  const work: Work = { store, held, tree, before, plan, generation, options, done: { files: 0, bytes: 0, deleted: 0 } };
  if (changes) await change(work);
  const purges = await purge(work);
  if (changes || before.journal !== null) await store.remove(JOURNAL, () => permit(work));
  return { ...reportOf(plan, tree, before, options), generation, conditional: held.conditional, purges };
}

type Work = {
  readonly store: Store;
  readonly held: Hold;
  readonly tree: LocalTree;
  readonly before: Before;
  readonly plan: Plan;
  readonly generation: number;
  readonly options: DeployOptions;
  readonly done: { files: number; bytes: number; deleted: number };
};

function permit({ held, options }: Work): void {
  options.permit();
  held.check();
}

export class TooManyDeletionsError extends Error {
  constructor(count: number, most: number) {
    const what = `This would delete ${count} files, and --max-delete is ${most}: nothing was changed.`;
    super(`${what} If that is right, say --max-delete ${count} or --force.`);
    this.name = "TooManyDeletionsError";
  }
}

/** What is not here can't be uploaded. */
function refuseAbsent({ writes }: Plan, { elsewhere }: LocalTree, { out }: DeployOptions, store: Store): void {
  const count = writes.flat().filter(({ path }) => elsewhere.has(path)).length;
  if (count === 0) return;
  const what = `${count} files that ${store.name} needs are not in ${out}, but where its tree was fetched from`;
  throw new UnfinishedTreeError(`${what}: nothing was changed. Run \`precast build --full\`, then deploy.`);
}

function refuseDeletions({ removes }: Plan, { force, maxDelete }: DeployOptions): void {
  const count = removes.flat().length;
  if (!force && count > maxDelete) throw new TooManyDeletionsError(count, maxDelete);
}

async function change(work: Work): Promise<void> {
  const { plan, done } = work;
  const [writes, removes] = [plan.writes.flat().length, plan.removes.flat().length];
  const again = "Run the deploy again: it goes on from there.";
  await inStage(`Nothing was changed. ${again}`, () => beginJournal(work));
  await inStage(
    () => `${done.files} of ${writes} files were uploaded, and nothing was deleted. ${again}`,
    () => upload(work),
  );
  await inStage(
    `All ${writes} files were uploaded; the manifest was not replaced, and nothing was deleted. ${again}`,
    () => replaceManifest(work),
  );
  await inStage(
    () => `All ${writes} files were uploaded; ${done.deleted} of ${removes} were deleted. ${again}`,
    () => removeOld(work),
  );
}

async function inStage<T>(standing: string | (() => string), run: () => Promise<T>): Promise<T> {
  return run().catch((error: unknown) => {
    throw new DeployError(error, typeof standing === "string" ? standing : standing());
  });
}

/** From here on the manifest is not believed about these files. */
async function beginJournal(work: Work): Promise<void> {
  const { plan, before, generation, options } = work;
  const writes = plan.writes.flat().map(({ path }) => path);
  const removes = plan.removes.flat();
  const [touched, earlier] = [new Set([...writes, ...removes]), before.journal];
  const purges = options.purge === undefined || earlier === null ? [] : unpurgedIn(earlier);
  const journal: Journal = { generation, writes, removes, purges: purges.filter((path) => !touched.has(path)) };
  await replaceNote(work, JOURNAL, writeJournal(journal), before.etags.journal);
}

async function upload(work: Work): Promise<void> {
  const { plan, options, done } = work;
  const totalFiles = plan.writes.flat().length;
  const apps = byFolder(work.tree.apps);
  for (const step of plan.writes) {
    await sideBySide(step, options.concurrency, async (file) => {
      await uploadFile(work, file, isStatePath(file.path) ? PRIVATE_HEADERS : headersOf(file.path, apps, options));
      done.files += 1;
      done.bytes += file.size;
      options.onProgress?.({ files: done.files, totalFiles, bytes: done.bytes });
    });
  }
}

function headersOf(
  path: string,
  apps: ReadonlyMap<string, string>,
  { cacheControl, cdnCacheControl }: Wanted,
): FileHeaders {
  const { app, type } = ownerOf(path, apps);
  return { cacheControl, cdnCacheControl, tags: app === null ? [] : tagsOf(app, type) };
}

async function uploadFile(work: Work, { path, sha256 }: PlannedFile, headers: FileHeaders): Promise<void> {
  const bytes = readPlanned(work.options.out, path, sha256);
  await work.store.put(path, bytes, { headers, sha256, permit: () => permit(work) });
}

/** What is uploaded is the tree that was looked at, and no mixture of two. */
function readPlanned(out: string, path: string, sha256: string): Uint8Array<ArrayBuffer> {
  try {
    const bytes = readFileSync(join(out, path));
    if (markOf(bytes).sha256 === sha256) return bytes;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  throw new UnfinishedTreeError(`A build has changed ${out} meanwhile.`);
}

async function replaceManifest(work: Work): Promise<void> {
  const { tree, before, generation, options } = work;
  const { cacheControl, cdnCacheControl } = options;
  const { apps, files } = tree;
  const text = writeManifest({ generation, cacheControl, cdnCacheControl, apps, files });
  await replaceNote(work, MANIFEST, text, before.etags.manifest);
}

/** `etag` is that of what was read before; null where nothing was. */
async function replaceNote(work: Work, key: string, text: string, etag: string | null): Promise<void> {
  const { store, held } = work;
  const condition = etag === null ? ({ kind: "absent" } as const) : ({ kind: "etag", etag } as const);
  const bytes = new TextEncoder().encode(text);
  const { kind } = await store.put(key, bytes, {
    headers: PRIVATE_HEADERS,
    sha256: markOf(bytes).sha256,
    condition: held.conditional ? condition : undefined,
    permit: () => permit(work),
  });
  if (kind === "put") return;
  // The answer to a try that went well may have been lost.
  if ((await store.get(key))?.bytes.equals(bytes)) return;
  throw new Error(`Another deploy has replaced ${key} in ${store.name} meanwhile.`);
}

async function removeOld(work: Work): Promise<void> {
  const { store, plan, options, done } = work;
  for (const step of plan.removes) {
    await sideBySide(step, options.concurrency, async (path) => {
      await store.remove(path, () => permit(work));
      done.deleted += 1;
    });
  }
}

async function purge({ tree, before, plan, options }: Work): Promise<number | null> {
  const { purge: forget } = options;
  if (forget === undefined) return null;
  const changed = changedFiles(plan, tree, before, options);
  if (changed.length === 0) return 0;
  const standing = "All files are deployed. Run the deploy again: it purges what was not purged.";
  return inStage(standing, () => forget(changed));
}

/** What clients may see: of this deploy, and of those before it that purged nothing. */
function changedFiles(plan: Plan, tree: LocalTree, before: Before, { out, purge }: DeployOptions): TreeFile[] {
  const own = [...plan.writes.flat().map(({ path }) => path), ...plan.removes.flat()];
  const earlier = before.journal === null || purge === undefined ? [] : unpurgedIn(before.journal);
  const apps = byFolder([...(before.manifest?.apps ?? []), ...tree.apps]);
  const paths = [...new Set([...own, ...earlier])].filter((path) => !isStatePath(path));
  return paths.map((path) => describeTreeFile(out, path, apps));
}

function reportOf(plan: Plan, tree: LocalTree, before: Before, options: DeployOptions) {
  const writes = plan.writes.flat();
  return {
    written: writes.length,
    unchanged: plan.unchanged,
    deleted: plan.removes.flat().length,
    bytes: writes.reduce((sum, { size }) => sum + size, 0),
    changed: changedFiles(plan, tree, before, options),
    tree,
  };
}
