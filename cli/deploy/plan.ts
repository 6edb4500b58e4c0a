/**
 * Plans what to upload and delete, and in which order: a client must never follow a link to a missing file. Refuses plans
 * that cannot be carried out, or that look like a mistake, and tells which files a CDN has to be purged of.
 */
import { textOfSegment } from "../../shared/api/address.ts";
import { formatFiles } from "../../shared/text.ts";
import type { FileDigest, FileDigests } from "../../shared/tree.ts";
import { describeTreeFile, isStatePath, keysByFolder, type TreeFile } from "../../shared/tree-file.ts";
import { type LocalApp, type LocalTree, UnfinishedTreeError } from "./local-tree.ts";
import { owedIn, type StoreContents, unpurgedIn } from "./manifest.ts";
import type { Store } from "./store.ts";

export type PlannedFile = FileDigest & { readonly path: string; readonly isNew: boolean };

/** An app of the tree, the store or both. */
export type PlannedApp = {
  readonly appFolder: string;
  /** Null when the tree has no such app, so that everything of it is deleted. */
  readonly app: LocalApp | null;
};

export type Plan = PlannedApp & {
  /** The key of the app; null when neither tree nor store tells it. */
  readonly key: string | null;
  /** Steps: each begins when the one before it is done. The same holds for `removes`. */
  readonly writes: readonly (readonly PlannedFile[])[];
  readonly removes: readonly (readonly string[])[];
  readonly unchanged: number;
};

/** Throws UnfinishedTreeError when the plan would need files that the local tree lacks. */
export function planDeploy(
  store: Store,
  out: string,
  { appFolder, app }: PlannedApp,
  remote: LocalTree["remote"],
  before: StoreContents,
): Plan {
  const files: FileDigests = app?.files ?? new Map();
  const { certain, uncertainPaths, visiblePaths } = before;
  const writes: PlannedFile[] = [];
  for (const [path, digest] of files) {
    if (certain.get(path)?.sha256 !== digest.sha256) writes.push({ path, ...digest, isNew: !visiblePaths.has(path) });
  }
  const removes = [...new Set([...certain.keys(), ...uncertainPaths])].filter((path) => !files.has(path)).sort();
  refuseAbsent(writes, remote, out, store);
  return {
    appFolder,
    app,
    key: app?.key ?? before.manifest?.app ?? before.journal?.app ?? textOfSegment(appFolder),
    writes: inSteps(writes, WRITE_STEPS, ({ path, isNew }) => writeStep(path, isNew)),
    removes: inSteps(removes, REMOVE_STEPS, removeStep),
    unchanged: files.size - writes.length,
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

/** Throws UnfinishedTreeError for files to upload that the local tree lacks (after `build --state`). */
function refuseAbsent(writes: readonly PlannedFile[], remote: ReadonlySet<string>, out: string, store: Store): void {
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

/** Why plans look like a mistake: errors that refuse them. */
export function findRefusals(plans: readonly Plan[], localMedia: readonly string[], limits: Limits): Error[] {
  const deletions = deletionsRefusal(
    plans.reduce((sum, { removes }) => sum + removes.flat().length, 0),
    limits,
  );
  return [
    ...(!limits.allowLocalMedia && localMedia.length > 0 ? [new LocalMediaError(localMedia)] : []),
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
export function changedFiles(plan: Plan, unpurged: readonly string[], out: string): readonly TreeFile[] {
  const paths = [...touchedBy(plan), ...unpurged].filter((path) => !isStatePath(path));
  const byFolder = keysByFolder(plan.key === null ? [] : [plan.key]);
  return paths.map((path) => describeTreeFile(out, path, byFolder));
}

export function touchedBy({ writes, removes }: Plan): string[] {
  return [...writes.flat().map(({ path }) => path), ...removes.flat()];
}
