/**
 * Makes a store equal to the local tree, while holding the store's lock: reads the store's contents, plans the
 * difference, refuses it or carries it out (change.ts), and purges a CDN. After an interruption, the next deploy learns
 * from the journal which files are uncertain, and from the checkpoints which of them are uploaded already.
 */
import { randomUUID } from "node:crypto";
import { segment } from "../../shared/api/address.ts";
import { formatFiles } from "../../shared/text.ts";
import { appFolderOf, describeTreeFile, isStatePath, keysByFolder, type TreeFile } from "../../shared/tree.ts";
import { changeStore, explainFailure, type StoreChangeOptions } from "./change.ts";
import { readContents } from "./contents.ts";
import { endJournal, owedIn, type StoreChange, type StoreContents, unpurgedIn } from "./journal.ts";
import { inOrder, type LocalTree, scanTree, UnfinishedTreeError } from "./local-tree.ts";
import type { Manifest, Plan } from "./manifest.ts";
import { isEmpty, planDeploy } from "./plan.ts";
import type { Store, StoreLock } from "./store.ts";
import type { Target } from "./target.ts";

export type DeployOptions = StoreChangeOptions & {
  readonly dryRun: boolean;
  /** The deploy is refused when it would delete more files than this, unless `force` is set. */
  readonly maxDelete: number;
  readonly onPlan?: ((plan: Plan) => void) | undefined;
  /**
   * Purges these files from the CDN and returns the number of requests. Absent when no CDN is configured. If it fails,
   * the next deploy that purges makes up for it.
   */
  readonly purge?: ((changed: readonly TreeFile[]) => Promise<number>) | undefined;
};

export type Deployed = {
  /** Generation number of the manifest that the store now has. */
  readonly generation: number;
  readonly written: number;
  readonly unchanged: number;
  readonly deleted: number;
  /** Number of bytes uploaded; in a dry run, of bytes that would be. */
  readonly bytes: number;
  /** Whether the store honours conditional writes; if not, simultaneous deploys may interleave. Null in a dry run. */
  readonly conditional: boolean | null;
  /** Number of purge requests; null when no CDN is configured, and in a dry run. */
  readonly purges: number | null;
  /** Changed files that clients can see: of this deploy and, if it purges, those that earlier deploys did not purge. */
  readonly changed: readonly TreeFile[];
  readonly tree: LocalTree;
};

/**
 * Throws UnfinishedTreeError, DeployLockedError, UnreadableStoreError, TooManyDeletionsError, RemoteFault or
 * DeployError.
 */
export async function deployTree({ store, takeLock }: Target, options: DeployOptions): Promise<Deployed> {
  const tree = await scanTree(options.out);
  if (options.dryRun) return previewDeploy(store, tree, options);
  const lock = await takeLock();
  try {
    return await deployLocked(store, lock, tree, options);
  } finally {
    // A lock that cannot be released expires by itself.
    await lock.release().catch(() => {});
  }
}

async function previewDeploy(store: Store, local: LocalTree, options: DeployOptions): Promise<Deployed> {
  const before = await readContents(store, options);
  const { tree, plan } = planFor(store, local, before, options);
  options.onPlan?.(plan);
  const generation = before.manifest?.generation ?? 0;
  const unpurged = options.purge === undefined ? [] : unpurgedFor(plan, before, true);
  const changed = changedFiles(plan, tree, before, options.out, unpurged);
  return { ...reportOf(plan, local, changed), generation, conditional: null, purges: null };
}

async function deployLocked(
  store: Store,
  lock: StoreLock,
  local: LocalTree,
  options: DeployOptions,
): Promise<Deployed> {
  const before = await readContents(store, options);
  const { tree, plan } = planFor(store, local, before, options);
  refuseDeletions(plan, options);
  options.onPlan?.(plan);
  const hasChanges = !isEmpty(plan) || before.uploaded.size > 0;
  const generation = (before.manifest?.generation ?? 0) + (hasChanges ? 1 : 0);
  const throwIfStopped = () => {
    options.throwIfStopped();
    lock.check();
  };
  const purging = options.purge !== undefined;
  const unpurged = unpurgedFor(plan, before, purging);
  const { cacheControl, cdnCacheControl } = options;
  const what = { generation, deploy: randomUUID(), hasChanges, cacheControl, cdnCacheControl };
  const change: StoreChange = { tree, before, plan, ...what, purging, unpurged, apps: knownApps(tree, before) };
  const changed = changedFiles(plan, tree, before, options.out, purging ? unpurged : []);
  const checkpointCount = hasChanges
    ? await changeStore(store, change, { ...options, throwIfStopped, conditional: lock.conditional })
    : 0;
  const purges = await purge(changed, options);
  const explanation = "All files are deployed; only the cleanup of the journal is left. Run the deploy again.";
  await explainFailure(explanation, () =>
    endJournal(store, change, Math.max(checkpointCount, before.checkpointCount), throwIfStopped),
  );
  return { ...reportOf(plan, local, changed), generation, conditional: lock.conditional, purges };
}

/** `tree` is the local tree with the files of other apps that the store keeps. Throws UnfinishedTreeError. */
function planFor(store: Store, local: LocalTree, before: StoreContents, options: DeployOptions) {
  const tree = withOtherApps(local, before.manifest);
  const plan = planDeploy(tree.files, before);
  refuseOtherApps(plan, local, options.out, store);
  refuseAbsent(plan, tree, options, store);
  return { tree, plan };
}

class TooManyDeletionsError extends Error {
  constructor(count: number, most: number) {
    const what = `This would delete ${formatFiles(count)}, but --max-delete is ${most}. Nothing was changed.`;
    super(`${what} If this is intended, use --max-delete ${count} or --force.`);
    this.name = "TooManyDeletionsError";
  }
}

/** Throws UnfinishedTreeError when the plan uploads files that the local tree lacks (after `build --state`). */
function refuseAbsent({ writes }: Plan, { elsewhere }: LocalTree, { out }: DeployOptions, store: Store): void {
  const count = writes.flat().filter(({ path }) => elsewhere.has(path)).length;
  if (count === 0) return;
  const what = `${count} files that ${store.name} needs are not in ${out}, but only at the target that its tree was fetched from`;
  throw new UnfinishedTreeError(`${what}. Nothing was changed. Run \`precast build --full\`, then deploy.`);
}

/** The error that refuses so many deletions; null when they are allowed. */
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

async function purge(changed: readonly TreeFile[], { purge: purgeFiles }: DeployOptions): Promise<number | null> {
  if (purgeFiles === undefined) return null;
  if (changed.length === 0) return 0;
  const explanation = "All files are deployed. Run the deploy again: it purges what was not purged.";
  return explainFailure(explanation, () => purgeFiles(changed));
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

// Decides which files clients see changed by a deploy, and which of earlier deploys a CDN has not been purged of.

/**
 * The files that the plan touches, and those of `unpurged`, in the tree at `out`. State files are left out, because clients
 * do not see them.
 */
function changedFiles(
  plan: Plan,
  tree: LocalTree,
  before: StoreContents,
  out: string,
  unpurged: readonly string[],
): TreeFile[] {
  const apps = keysByFolder(knownApps(tree, before));
  const paths = [...touchedBy(plan), ...unpurged].filter((path) => !isStatePath(path));
  return paths.map((path) => describeTreeFile(out, path, apps));
}

/** Includes apps that earlier deploys have removed: a CDN may still have to be purged of them. */
function knownApps(tree: LocalTree, { manifest, journal }: StoreContents): string[] {
  return [...new Set([...(manifest?.apps ?? []), ...(journal?.apps ?? []), ...tree.apps])];
}

function touchedBy({ writes, removes }: Plan): string[] {
  return [...writes.flat().map(({ path }) => path), ...removes.flat()];
}

/**
 * Paths that earlier deploys changed and did not purge. If this deploy purges: all of them, except those that it
 * touches and so purges anyway. If not: those whose purge is owed, which the journal has to keep.
 */
function unpurgedFor(plan: Plan, { journal }: StoreContents, purging: boolean): readonly string[] {
  if (journal === null) return [];
  if (!purging) return owedIn(journal);
  const touched = new Set(touchedBy(plan));
  return unpurgedIn(journal).filter((path) => !touched.has(path));
}

// Keeps what a target has of apps that the tree lacks, because it was built with --app.

/**
 * A tree that lacks apps, completed by the files that the manifest lists of others, as files that exist only at the
 * target. A tree that has all apps stays as it is: what the manifest lists of others is surplus then.
 */
function withOtherApps(tree: LocalTree, manifest: Manifest | null): LocalTree {
  if (tree.hasAllApps || manifest === null) return tree;
  const isOwn = ownedBy(tree);
  const others = [...manifest.files].filter(([path]) => !isOwn(path));
  const files = inOrder([...tree.files, ...others]);
  const apps = [...new Set([...tree.apps, ...manifest.apps])].sort();
  return { ...tree, files, apps, elsewhere: new Set([...tree.elsewhere, ...others.map(([path]) => path)]) };
}

/**
 * Throws UnfinishedTreeError when the plan writes or deletes files of an app that the tree lacks, as with --force, with
 * other headers, or after a deploy of that app was interrupted.
 */
function refuseOtherApps({ writes, removes }: Plan, tree: LocalTree, out: string, store: Store): void {
  if (tree.hasAllApps) return;
  const isOwn = ownedBy(tree);
  const foreign = [...writes.flat().map(({ path }) => path), ...removes.flat()].filter((path) => !isOwn(path));
  if (foreign.length === 0) return;
  const what = `${out} was built with --app, and ${store.name} has files of other apps that this deploy would have to change, such as ${foreign[0]}`;
  throw new UnfinishedTreeError(`${what}. Nothing was changed. Run \`precast build\` for all apps, then deploy.`);
}

function ownedBy({ apps }: LocalTree): (path: string) => boolean {
  const folders = new Set(apps.map(segment));
  return (path) => folders.has(appFolderOf(path));
}
