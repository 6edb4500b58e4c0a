/**
 * Makes a store equal to the local tree, while holding the store's lock: reads what the store holds, plans the difference,
 * refuses it or carries it out, and purges a CDN. After an interruption, the next deploy learns from the journal which
 * files are uncertain, and which are uploaded already. If a step fails, the error says how far the deploy got.
 */
import type { TreeFile } from "../../shared/tree.ts";
import { findNewer } from "./age.ts";
import { type ChangeOptions, changeStore, endJournal, explainFailure, prepareChange } from "./change.ts";
import { type LocalTree, scanTree } from "./local-tree.ts";
import { readContents, type StoreContents } from "./manifest.ts";
import { deployMedia, type MediaDeployed, type MediaOptions } from "./media.ts";
import { changedFiles, findRefusals, knownApps, type Limits, type Plan, planDeploy, unpurgedFor } from "./plan.ts";
import type { Store, StoreLock } from "./store.ts";
import type { Target } from "./target.ts";

export type DeployOptions = ChangeOptions &
  Limits & {
    readonly dryRun: boolean;
    readonly onPlan?: ((plan: Plan) => void) | undefined;
    /** Absent when media are not deployed. */
    readonly media?: MediaOptions | undefined;
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
  /** Absent when media are not deployed. */
  readonly media?: MediaDeployed;
  /** Changed files that clients can see: of this deploy and, if it purges, those that earlier deploys did not purge. */
  readonly changed: readonly TreeFile[];
  readonly tree: LocalTree;
  /** Of a dry run: why the deploy would be refused. */
  readonly refusals: readonly Error[];
};

/**
 * Throws UnfinishedTreeError, DeployLockedError, UnreadableStoreError, RemoteFault, DeployError, or one of the errors of
 * findRefusals.
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
  const plan = planDeploy(store, options.out, local, before);
  options.onPlan?.(plan);
  const report = makeReport(plan, local, listChanges(plan, before, options));
  const refusals = await collectRefusals(plan, store, local, before, options);
  const media = await uploadMedia(store, null, local, options);
  return {
    ...report,
    ...media,
    generation: before.manifest?.generation ?? 0,
    conditional: null,
    purges: null,
    refusals,
  };
}

async function deployLocked(
  store: Store,
  lock: StoreLock,
  local: LocalTree,
  options: DeployOptions,
): Promise<Deployed> {
  const before = await readContents(store, options);
  const plan = planDeploy(store, options.out, local, before);
  const [refusal] = await collectRefusals(plan, store, local, before, options);
  if (refusal !== undefined) throw refusal;
  options.onPlan?.(plan);
  // First, because files of the tree lead to them.
  const media = await uploadMedia(store, lock, local, options);
  const changed = listChanges(plan, before, options);
  const change = prepareChange(store, lock, plan, before, options, options.purge !== undefined);
  if (change.hasChanges) await changeStore(change);
  const purges = await purge(changed, options);
  const explanation = "All files are deployed; only the cleanup of the journal is left. Run the deploy again.";
  await explainFailure(explanation, () => endJournal(change));
  const { generation } = change.journal;
  const report = { ...makeReport(plan, local, changed), ...media };
  return { ...report, generation, conditional: lock.conditional, purges, refusals: [] };
}

async function uploadMedia(
  store: Store,
  lock: StoreLock | null,
  { apps }: LocalTree,
  { media }: DeployOptions,
): Promise<Pick<Deployed, "media">> {
  return media === undefined ? {} : { media: await deployMedia(store, lock, apps, media) };
}

async function collectRefusals(
  plan: Plan,
  store: Store,
  local: LocalTree,
  { manifest }: StoreContents,
  options: DeployOptions,
): Promise<Error[]> {
  const { allowOlder, concurrency } = options;
  const newer = allowOlder ? null : await findNewer(store, local, plan, manifest, concurrency);
  return [...(newer === null ? [] : [newer]), ...findRefusals(plan, options)];
}

function listChanges(plan: Plan, before: StoreContents, { out, purge }: DeployOptions): readonly TreeFile[] {
  const unpurged = purge === undefined ? [] : unpurgedFor(plan, before, true);
  return changedFiles(plan, unpurged, knownApps(plan, before), out);
}

function makeReport(plan: Plan, tree: LocalTree, changed: readonly TreeFile[]) {
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

async function purge(changed: readonly TreeFile[], { purge: purgeFiles }: DeployOptions): Promise<number | null> {
  if (purgeFiles === undefined) return null;
  if (changed.length === 0) return 0;
  const explanation = "All files are deployed. Run the deploy again: it purges what was not purged.";
  return explainFailure(explanation, () => purgeFiles(changed));
}
