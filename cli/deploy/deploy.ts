/**
 * Makes a store equal to the local tree: reads what the store holds of each app, plans the difference, refuses it or carries
 * it out while holding the lock of the app, and purges a CDN. After an interruption, the next deploy learns from the journal
 * which files are uncertain, and which are uploaded already. If a step fails, the error says how far the deploy got.
 */
import { runConcurrently } from "../../shared/async.ts";
import type { TreeFile } from "../../shared/tree-file.ts";
import type { FileProgress } from "../builder/build.ts";
import {
  type Change,
  type ChangeOptions,
  changeStore,
  endJournal,
  explainFailure,
  needsChange,
  prepareChange,
} from "./change.ts";
import { adoptLayout, listTreeFiles, readLayout } from "./layout.ts";
import { type LocalTree, scanTree } from "./local-tree.ts";
import { type Notes, owedIn, readContents, readNotes, type StoreContents } from "./manifest.ts";
import { deployMedia, type MediaDeployed, type MediaOptions, requireMedia } from "./media.ts";
import { changedFiles, type Limits, type Plan, type PlannedApp, planDeploy, unpurgedFor } from "./plan.ts";
import { APPS_AT_ONCE, collectRefusals, type Preview, previewApps } from "./preview.ts";
import type { Store, StoreLock } from "./store.ts";
import type { Target } from "./target.ts";

export type DeployOptions = Omit<ChangeOptions, "onUpload"> &
  Limits & {
    readonly dryRun: boolean;
    readonly onPlan?: ((plan: Plan) => void) | undefined;
    readonly onProgress?: ((progress: FileProgress) => void) | undefined;
    /** Absent when media are not deployed. */
    readonly media?: MediaOptions | undefined;
    /**
     * Purges these files from the CDN and returns the number of requests. Absent when no CDN is configured. If it fails,
     * the next deploy that purges makes up for it.
     */
    readonly purge?: ((changed: readonly TreeFile[]) => Promise<number>) | undefined;
  };

export type Deployed = {
  /** The highest generation of the manifests that the store now has. */
  readonly generation: number;
  readonly written: number;
  readonly unchanged: number;
  readonly deleted: number;
  /** Number of bytes uploaded; in a dry run, of bytes that would be. */
  readonly bytes: number;
  /**
   * Whether the store honours conditional writes; if not, simultaneous deploys may interleave. Null when nothing was
   * written, as in a dry run.
   */
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
export async function deployTree(target: Target, options: DeployOptions): Promise<Deployed> {
  const tree = await scanTree(options.out);
  if (options.media !== undefined) requireMedia([...tree.apps.keys()], options.media);
  const layout = await readLayout(target.store, options.force);
  const previews = await previewApps(target.store, tree, layout, options);
  const refusals = await collectRefusals(target.store, tree, previews, options);
  if (options.dryRun) return report(tree, previews, await previewDone(target.store, previews, options), refusals);
  if (refusals[0] !== undefined) throw refusals[0];
  if (layout.kind === "earlier") await adoptLayout(target.store, layout, options.force, target.takeLock);
  const done = await deployApps(target, tree, previews, options);
  if (layout.kind === "new") await adoptLayout(target.store, layout, options.force, target.takeLock);
  return report(tree, previews, done, []);
}

/** What was done, beside the plans. */
type Done = Pick<Deployed, "generation" | "conditional" | "purges" | "media" | "changed">;

async function previewDone(store: Store, previews: readonly Preview[], options: DeployOptions): Promise<Done> {
  for (const { plan } of previews) options.onPlan?.(plan);
  const changed = previews.flatMap(({ plan, before }) => listChanges(plan, before, options));
  const media = await uploadMedia(store, previews, options);
  const generation = Math.max(0, ...previews.map(({ before }) => before.manifest?.generation ?? 0));
  return { generation, conditional: null, purges: null, changed, ...media };
}

/** Changes the apps that differ, some at a time: only those are locked, and a CDN is purged of what changed in them at once. */
async function deployApps(
  target: Target,
  tree: LocalTree,
  previews: readonly Preview[],
  options: DeployOptions,
): Promise<Done> {
  const pending = previews.filter((preview) => isPending(preview, options));
  const onUpload = countProgress(pending, options.onProgress);
  const generations = previews.map(({ before }) => before.manifest?.generation ?? 0);
  let done: Done = {
    generation: Math.max(0, ...generations),
    conditional: null,
    purges: options.purge === undefined ? null : 0,
    changed: [],
  };
  for (let next = 0; next < pending.length; next += APPS_AT_ONCE) {
    const apps = pending.slice(next, next + APPS_AT_ONCE).map(({ plan }) => plan);
    done = addDone(done, await deployGroup(target, tree, apps, { ...options, onUpload }));
  }
  return done;
}

/** Whether anything of the app is to be written, removed or purged, or left by an earlier deploy. */
function isPending({ plan, before }: Preview, { purge, media }: DeployOptions): boolean {
  const { journal } = before;
  const isLeft = journal !== null && (purge !== undefined || owedIn(journal).length === 0);
  return isLeft || needsChange(plan, before) || (media !== undefined && plan.app !== null);
}

function addDone(one: Done, other: Done): Done {
  const media = [one.media, other.media].filter((some) => some !== undefined);
  return {
    generation: Math.max(one.generation, other.generation),
    conditional: other.conditional,
    purges: one.purges === null || other.purges === null ? null : one.purges + other.purges,
    changed: [...one.changed, ...other.changed],
    ...(media.length === 0 ? {} : { media: media.reduce(addMedia) }),
  };
}

function addMedia(one: MediaDeployed, other: MediaDeployed): MediaDeployed {
  return {
    written: one.written + other.written,
    unchanged: one.unchanged + other.unchanged,
    bytes: one.bytes + other.bytes,
  };
}

type GroupOptions = Omit<DeployOptions, "dryRun" | "onProgress"> & Pick<ChangeOptions, "onUpload">;
/** An app whose lock is held. `notes` are left out if they are not read yet. */
export type Locked = { readonly app: PlannedApp; readonly lock: StoreLock; readonly notes?: Notes };

/** Reads what the store has of the apps again, now that nobody else changes it. */
async function deployGroup(
  target: Target,
  tree: LocalTree,
  apps: readonly PlannedApp[],
  options: GroupOptions,
): Promise<Done> {
  const locked: Locked[] = [];
  try {
    for (const app of apps) locked.push({ app, lock: await target.takeAppLock(app.appFolder) });
    return await deployLocked(target.store, tree, locked, options);
  } finally {
    // A lock that cannot be released expires by itself.
    for (const { lock } of locked) await lock.release().catch(() => {});
  }
}

/**
 * Of the tree, only these apps are looked at. `manifests` are the ETags that their manifests have then. Throws as deployTree,
 * but nothing of the lock.
 */
export async function deployLocked(
  store: Store,
  tree: LocalTree,
  locked: readonly Locked[],
  options: GroupOptions,
): Promise<Done & { readonly manifests: readonly (string | null)[] }> {
  const changes: Change[] = [];
  for (const one of locked) changes.push(await prepareApp(store, tree, one, options));
  // First, because files of the tree lead to them.
  const media = await uploadMedia(store, changes, options);
  const changed = changes.flatMap(({ plan, before }) => listChanges(plan, before, options));
  await runConcurrently(changes, APPS_AT_ONCE, async (change) => {
    if (change.hasChanges) await changeStore(change);
  });
  const purges = await purge(changed, options);
  const explanation = "All files are deployed; only the cleanup of the journal is left. Run the deploy again.";
  await explainFailure(explanation, () => runConcurrently(changes, APPS_AT_ONCE, endJournal));
  const generation = Math.max(...changes.map(({ journal }) => journal.generation));
  const manifests = changes.map(({ etags }) => etags.manifest);
  return { generation, conditional: changes[0]?.conditional ?? null, purges, changed, manifests, ...media };
}

async function prepareApp(
  store: Store,
  tree: LocalTree,
  { app, lock, notes }: Locked,
  options: GroupOptions,
): Promise<Change> {
  const { appFolder } = app;
  const list = async () => (await listTreeFiles(store, `${appFolder}/`)).get(appFolder) ?? [];
  const before = await readContents(notes ?? (await readNotes(store, appFolder, options)), options, list);
  const plan = planDeploy(store, options.out, app, tree.remote, before);
  const [refusal] = await collectRefusals(store, tree, [{ plan, before }], options);
  if (refusal !== undefined) throw refusal;
  options.onPlan?.(plan);
  return prepareChange(store, lock, plan, before, options, options.purge !== undefined);
}

async function uploadMedia(
  store: Store,
  changes: readonly (Pick<Change, "plan"> & { readonly options?: ChangeOptions })[],
  { media }: Pick<DeployOptions, "media">,
): Promise<Pick<Deployed, "media">> {
  if (media === undefined) return {};
  let sum: MediaDeployed = { written: 0, unchanged: 0, bytes: 0 };
  for (const { plan, options } of changes) {
    if (plan.app === null) continue;
    sum = addMedia(sum, await deployMedia(store, plan.app.key, { ...media, check: options?.throwIfStopped ?? null }));
  }
  return { media: sum };
}

function listChanges(
  plan: Plan,
  before: StoreContents,
  { out, purge }: Pick<DeployOptions, "out" | "purge">,
): readonly TreeFile[] {
  return changedFiles(plan, purge === undefined ? [] : unpurgedFor(plan, before, true), out);
}

function countProgress(pending: readonly Preview[], onProgress: DeployOptions["onProgress"]) {
  const total = pending.reduce((sum, { plan }) => sum + plan.writes.flat().length, 0);
  let [done, bytes] = [0, 0];
  return (size: number) => {
    done += 1;
    bytes += size;
    onProgress?.({ done, total, bytes });
  };
}

async function purge(
  changed: readonly TreeFile[],
  { purge: purgeFiles }: Pick<DeployOptions, "purge">,
): Promise<number | null> {
  if (purgeFiles === undefined) return null;
  if (changed.length === 0) return 0;
  const explanation = "All files are deployed. Run the deploy again: it purges what was not purged.";
  return explainFailure(explanation, () => purgeFiles(changed));
}

function report(tree: LocalTree, previews: readonly Preview[], done: Done, refusals: readonly Error[]): Deployed {
  const writes = previews.flatMap(({ plan }) => plan.writes.flat());
  return {
    ...done,
    written: writes.length,
    unchanged: previews.reduce((sum, { plan }) => sum + plan.unchanged, 0),
    deleted: previews.reduce((sum, { plan }) => sum + plan.removes.flat().length, 0),
    bytes: writes.reduce((sum, { size }) => sum + size, 0),
    tree,
    refusals,
  };
}
