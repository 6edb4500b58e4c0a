/** Decides which files clients see changed by a deploy, and which of earlier deploys a CDN has not been purged of. */
import { owedIn, unpurgedIn } from "./journal.ts";
import type { LocalTree } from "./local-tree.ts";
import type { Plan } from "./plan.ts";
import type { StoreContents } from "./store-contents.ts";
import { describeTreeFile, isStatePath, keysByFolder, type TreeFile } from "./tree-file.ts";

/**
 * The files that the plan touches, and those of `unpurged`, in the tree at `out`. State files are left out, because clients
 * do not see them.
 */
export function changedFiles(
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
export function knownApps(tree: LocalTree, { manifest, journal }: StoreContents): string[] {
  return [...new Set([...(manifest?.apps ?? []), ...(journal?.apps ?? []), ...tree.apps])];
}

function touchedBy({ writes, removes }: Plan): string[] {
  return [...writes.flat().map(({ path }) => path), ...removes.flat()];
}

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
