/**
 * Plans what to upload and delete, and in which order: a client must never follow a link to a missing file. Refuses plans
 * that cannot be carried out, or that look like a mistake, and tells which files a CDN has to be purged of.
 */
import { segment } from "../../shared/api/address.ts";
import { formatFiles } from "../../shared/text.ts";
import {
  describeTreeFile,
  type FileDigest,
  findAppFolder,
  isStatePath,
  keysByFolder,
  type TreeFile,
} from "../../shared/tree.ts";
import { inOrder, type LocalTree, UnfinishedTreeError } from "./local-tree.ts";
import { type Manifest, owedIn, type StoreContents, unpurgedIn } from "./manifest.ts";
import type { Store } from "./store.ts";

export type PlannedFile = FileDigest & { readonly path: string; readonly isNew: boolean };

export type Plan = {
  /** Steps: each begins when the one before it is done. The same holds for `removes`. */
  readonly writes: readonly (readonly PlannedFile[])[];
  readonly removes: readonly (readonly string[])[];
  readonly unchanged: number;
  /** The local tree with the files of other apps that the store keeps. */
  readonly tree: LocalTree;
};

/** Throws UnfinishedTreeError when the plan would need files that the local tree lacks. */
export function planDeploy(store: Store, out: string, local: LocalTree, before: StoreContents): Plan {
  const tree = withOtherApps(local, before.manifest);
  const { certain, uncertainPaths, visiblePaths } = before;
  const writes: PlannedFile[] = [];
  for (const [path, digest] of tree.files) {
    if (certain.get(path)?.sha256 !== digest.sha256) writes.push({ path, ...digest, isNew: !visiblePaths.has(path) });
  }
  const removes = [...new Set([...certain.keys(), ...uncertainPaths])].filter((path) => !tree.files.has(path)).sort();
  refuseOtherApps([...writes.map(({ path }) => path), ...removes], local, out, store);
  refuseAbsent(writes, tree, out, store);
  return {
    writes: inSteps(writes, WRITE_STEPS, ({ path, isNew }) => writeStep(path, isNew)),
    removes: inSteps(removes, REMOVE_STEPS, removeStep),
    unchanged: tree.files.size - writes.length,
    tree,
  };
}

/**
 * The order of a build. New pages come before the lists whose `last_page` leads to them; the first page of a type is
 * one of those lists, even if it is new.
 */
const WRITE_STEPS = ["entry", "new list", "list", "schema", "catalog", "state"] as const;
const REMOVE_STEPS = ["state", "catalog", "schema", "first page", "list", "entry"] as const;

function inSteps<T, S extends string>(all: readonly T[], steps: readonly S[], stepOf: (one: T) => S): T[][] {
  return steps.map((step) => all.filter((one) => stepOf(one) === step)).filter((some) => some.length > 0);
}

function classifyFile(path: string): "state" | "catalog" | "schema" | "entry" | "list" {
  if (isStatePath(path)) return "state";
  if (path.endsWith("/v1/_schemas.json")) return "catalog";
  if (path.includes("/v1/_schemas/")) return "schema";
  return /^[^/]+\/v1\/[^/]+\/entry\//.test(path) ? "entry" : "list";
}

function writeStep(path: string, isNew: boolean): (typeof WRITE_STEPS)[number] {
  const kind = classifyFile(path);
  return kind === "list" && isNew && !isFirstPage(path) ? "new list" : kind;
}

function removeStep(path: string): (typeof REMOVE_STEPS)[number] {
  const kind = classifyFile(path);
  return kind === "list" && isFirstPage(path) ? "first page" : kind;
}

function isFirstPage(path: string): boolean {
  return path.endsWith("/page/1.json");
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
  return { ...tree, files, apps, remote: new Set([...tree.remote, ...others.map(([path]) => path)]) };
}

/**
 * Throws UnfinishedTreeError when files of an app that the tree lacks would change, as with --force, with other headers,
 * or after a deploy of that app was interrupted.
 */
function refuseOtherApps(changed: readonly string[], tree: LocalTree, out: string, store: Store): void {
  if (tree.hasAllApps) return;
  const isOwn = ownedBy(tree);
  const foreign = changed.find((path) => !isOwn(path));
  if (foreign === undefined) return;
  const what = `${out} was built with --app, and ${store.name} has files of other apps that this deploy would have to change, such as ${foreign}`;
  throw new UnfinishedTreeError(`${what}. Nothing was changed. Run \`precast build\` for all apps, then deploy.`);
}

function ownedBy({ apps }: LocalTree): (path: string) => boolean {
  const folders = new Set(apps.map(segment));
  return (path) => folders.has(findAppFolder(path));
}

/** Throws UnfinishedTreeError for files to upload that the local tree lacks (after `build --state`). */
function refuseAbsent(writes: readonly PlannedFile[], { remote }: LocalTree, out: string, store: Store): void {
  const count = writes.filter(({ path }) => remote.has(path)).length;
  if (count === 0) return;
  const what = `${count} files that ${store.name} needs are not in ${out}, but only at the target that its tree was fetched from`;
  throw new UnfinishedTreeError(`${what}. Nothing was changed. Run \`precast build --full\`, then deploy.`);
}

class TooManyDeletionsError extends Error {
  constructor(count: number, most: number) {
    const what = `This would delete ${formatFiles(count)}, but --max-delete is ${most}. Nothing was changed.`;
    super(`${what} If this is intended, use --max-delete ${count} or --force.`);
    this.name = "TooManyDeletionsError";
  }
}

class LocalMediaError extends Error {
  constructor(paths: readonly string[]) {
    const what = `In ${formatFiles(paths.length)}, such as ${paths[0]}, addresses of media lead to the reader's own machine`;
    const remedy = "Set media_base_url of the app, or --media-base-url (PRECAST_MEDIA_BASE_URL), and build again";
    super(`${what}. Nothing was changed. ${remedy}, or deploy with --allow-local-media.`);
    this.name = "LocalMediaError";
  }
}

export type Limits = {
  readonly force: boolean;
  /** The deploy is refused when it would delete more files than this, unless `force` is set. */
  readonly maxDelete: number;
  /** Whether the deployed tree may be newer. */
  readonly allowOlder: boolean;
  /** Whether addresses of media may lead to the reader's own machine. */
  readonly allowLocalMedia: boolean;
};

/** Why a plan looks like a mistake: errors that refuse it. */
export function findRefusals({ removes, tree }: Plan, limits: Limits): Error[] {
  const deletions = deletionsRefusal(removes.flat().length, limits);
  return [
    ...(!limits.allowLocalMedia && tree.localMedia.length > 0 ? [new LocalMediaError(tree.localMedia)] : []),
    ...(deletions === null ? [] : [deletions]),
  ];
}

/** The error that refuses so many deletions; null when they are allowed. */
export function deletionsRefusal(
  count: number,
  { force, maxDelete }: Pick<Limits, "force" | "maxDelete">,
): TooManyDeletionsError | null {
  return !force && count > maxDelete ? new TooManyDeletionsError(count, maxDelete) : null;
}

// Decides which files clients see changed by a deploy, and which of earlier deploys a CDN has not been purged of.

/**
 * Paths that earlier deploys changed and did not purge. If this deploy purges: all of them, except those that it
 * touches and so purges anyway. If not: those whose purge is owed, which the journal has to keep.
 */
export function unpurgedFor(plan: Plan, { journal }: StoreContents, purging: boolean): readonly string[] {
  if (journal === null) return [];
  if (!purging) return owedIn(journal);
  const touched = new Set(touchedBy(plan));
  return unpurgedIn(journal).filter((path) => !touched.has(path));
}

/** The files that the plan touches, and those of `unpurged`. Clients do not see state files. */
export function changedFiles(
  plan: Plan,
  unpurged: readonly string[],
  apps: readonly string[],
  out: string,
): readonly TreeFile[] {
  const paths = [...touchedBy(plan), ...unpurged].filter((path) => !isStatePath(path));
  const byFolder = keysByFolder(apps);
  return paths.map((path) => describeTreeFile(out, path, byFolder));
}

/** Includes apps that earlier deploys have removed: a CDN may still have to be purged of them. */
export function knownApps({ tree }: Plan, { manifest, journal }: StoreContents): string[] {
  return [...new Set([...(manifest?.apps ?? []), ...(journal?.apps ?? []), ...tree.apps])];
}

export function touchedBy({ writes, removes }: Plan): string[] {
  return [...writes.flat().map(({ path }) => path), ...removes.flat()];
}
