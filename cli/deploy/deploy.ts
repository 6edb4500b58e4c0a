/**
 * Brings a store to what the tree is, while nobody else does: what is there is read, the difference is planned, refused or
 * carried out (change.ts), and a CDN is told. Interrupted anywhere, the next deploy knows from the journal what to look at
 * again, and from checkpoints what it need not.
 */
import { randomUUID } from "node:crypto";
import { type Change, type ChangeOptions, changeStore, endJournal, inStage } from "./change.ts";
import { owedIn, unpurgedIn } from "./journal.ts";
import { type LocalTree, scanTree, UnfinishedTreeError } from "./local-tree.ts";
import { isEmpty, type Plan, planDeploy } from "./plan.ts";
import type { Hold } from "./store/hold.ts";
import type { Store } from "./store/store.ts";
import type { Target } from "./store/target.ts";
import { readContents, type StoreContents } from "./store-contents.ts";
import { byFolder, describeTreeFile, isStatePath, type TreeFile } from "./tree-file.ts";

export type DeployOptions = ChangeOptions & {
  readonly dryRun: boolean;
  /** More files than this are not deleted, unless forced. */
  readonly maxDelete: number;
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
  const before = await readContents(store, options);
  const plan = planDeploy(tree.files, before);
  refuseAbsent(plan, tree, options, store);
  options.onPlan?.(plan);
  const generation = before.manifest?.generation ?? 0;
  const changed = changedFiles(plan, tree, before, unpurgedFor(plan, before, options), options);
  return { ...reportOf(plan, tree, changed), generation, conditional: null, purges: null };
}

async function deployHeld(store: Store, held: Hold, tree: LocalTree, options: DeployOptions): Promise<Deployed> {
  const before = await readContents(store, options);
  const plan = planDeploy(tree.files, before);
  refuseAbsent(plan, tree, options, store);
  refuseDeletions(plan, options);
  options.onPlan?.(plan);
  const changes = !isEmpty(plan) || before.uploaded.size > 0;
  const generation = (before.manifest?.generation ?? 0) + (changes ? 1 : 0);
  const permit = () => {
    options.permit();
    held.check();
  };
  const purging = options.purge !== undefined;
  const unpurged = unpurgedFor(plan, before, options);
  const { cacheControl, cdnCacheControl } = options;
  const what = { generation, deploy: randomUUID(), changes, cacheControl, cdnCacheControl };
  const change: Change = { tree, before, plan, ...what, purging, purges: unpurged, apps: knownApps(tree, before) };
  const changed = changedFiles(plan, tree, before, unpurged, options);
  const left = changes ? await changeStore(store, change, { ...options, permit, conditional: held.conditional }) : 0;
  const purges = await purge(changed, options);
  const standing = "All files are deployed; only the note of what was to be done is left. Run the deploy again.";
  await inStage(standing, () => endJournal(store, change, Math.max(left, before.checkpoints), permit));
  return { ...reportOf(plan, tree, changed), generation, conditional: held.conditional, purges };
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

/** Why so many deletions are refused; null where they are not. */
export function deletionsRefusal(
  count: number,
  { force, maxDelete }: Pick<DeployOptions, "force" | "maxDelete">,
): TooManyDeletionsError | null {
  return !force && count > maxDelete ? new TooManyDeletionsError(count, maxDelete) : null;
}

function refuseDeletions({ removes }: Plan, options: DeployOptions): void {
  const refusal = deletionsRefusal(removes.flat().length, options);
  if (refusal !== null) throw refusal;
}

async function purge(changed: readonly TreeFile[], { purge: forget }: DeployOptions): Promise<number | null> {
  if (forget === undefined) return null;
  if (changed.length === 0) return 0;
  const standing = "All files are deployed. Run the deploy again: it purges what was not purged.";
  return inStage(standing, () => forget(changed));
}

/** What clients may see: of this deploy, and where it purges of those before it that did not. */
function changedFiles(
  plan: Plan,
  tree: LocalTree,
  before: StoreContents,
  unpurged: readonly string[],
  { out, purge }: DeployOptions,
): TreeFile[] {
  const apps = byFolder(knownApps(tree, before));
  const paths = [...touchedBy(plan), ...(purge === undefined ? [] : unpurged)].filter((path) => !isStatePath(path));
  return paths.map((path) => describeTreeFile(out, path, apps));
}

/** Those too that are gone since a deploy that could not tell a CDN of it. */
function knownApps(tree: LocalTree, { manifest, journal }: StoreContents): string[] {
  return [...new Set([...(manifest?.apps ?? []), ...(journal?.apps ?? []), ...tree.apps])];
}

function touchedBy({ writes, removes }: Plan): string[] {
  return [...writes.flat().map(({ path }) => path), ...removes.flat()];
}

/** What earlier deploys have changed and no CDN was told of: without what this one touches, where it tells one of that. */
function unpurgedFor(plan: Plan, { journal }: StoreContents, { purge }: DeployOptions): readonly string[] {
  if (journal === null) return [];
  if (purge === undefined) return owedIn(journal);
  const touched = new Set(touchedBy(plan));
  return unpurgedIn(journal).filter((path) => !touched.has(path));
}

function reportOf(plan: Plan, tree: LocalTree, changed: readonly TreeFile[]) {
  const writes = plan.writes.flat();
  return {
    written: writes.length,
    unchanged: plan.unchanged,
    deleted: plan.removes.flat().length,
    bytes: writes.reduce((sum, { size }) => sum + size, 0),
    changed,
    tree,
  };
}
