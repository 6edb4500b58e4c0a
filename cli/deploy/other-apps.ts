/** Keeps what a target has of apps that the tree lacks, because it was built with --app. */
import { segment } from "../../shared/address.ts";
import { inOrder, type LocalTree, UnfinishedTreeError } from "./local-tree.ts";
import type { Manifest } from "./manifest.ts";
import type { Plan } from "./plan.ts";
import type { Store } from "./store/store.ts";
import { appFolderOf } from "./tree-file.ts";

/**
 * A tree that lacks apps, completed by the files that the manifest lists of others, as files that exist only at the
 * target. A tree that has all apps stays as it is: what the manifest lists of others is surplus then.
 */
export function withOtherApps(tree: LocalTree, manifest: Manifest | null): LocalTree {
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
export function refuseOtherApps({ writes, removes }: Plan, tree: LocalTree, out: string, store: Store): void {
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
