/** What a deploy would do in each app of the tree and the store, found before anything is locked, and why it is refused. */
import { segment } from "../../shared/api/address.ts";
import { runConcurrently } from "../../shared/async.ts";
import { findNewer } from "./age.ts";
import { type Layout, listAppFolders, listTreeFiles } from "./layout.ts";
import type { LocalTree } from "./local-tree.ts";
import { NO_NOTES, readContents, readNotes, type StoreContents, type UploadOptions } from "./manifest.ts";
import { findRefusals, type Limits, type Plan, type PlannedApp, planDeploy } from "./plan.ts";
import type { Store } from "./store.ts";

type PreviewOptions = UploadOptions & { readonly out: string };

/** What a deploy of an app would do, found without its lock. */
export type Preview = { readonly plan: Plan; readonly before: StoreContents };

/** Apps that are read, or changed, at the same time. */
export const APPS_AT_ONCE = 16;

export async function previewApps(
  store: Store,
  tree: LocalTree,
  layout: Layout,
  options: PreviewOptions,
): Promise<Preview[]> {
  const { force, out } = options;
  const listed = layout.kind === "new" || force ? await listTreeFiles(store) : null;
  const previews = new Map<string, Preview>();
  await runConcurrently(await findApps(store, tree, layout, listed), APPS_AT_ONCE, async (app) => {
    const { appFolder } = app;
    const notes = layout.kind === "earlier" ? layout.notes.get(appFolder) : await readNotes(store, appFolder, options);
    const list = async () => (listed ?? (await listTreeFiles(store, `${appFolder}/`))).get(appFolder) ?? [];
    const before = await readContents(notes ?? NO_NOTES, options, list);
    previews.set(appFolder, { plan: planDeploy(store, out, app, tree.remote, before), before });
  });
  return [...previews.entries()].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, preview]) => preview);
}

/** The apps of the tree and, unless it lacks some of its database, those that only the store has. */
async function findApps(
  store: Store,
  { apps, hasAllApps }: LocalTree,
  layout: Layout,
  listed: ReadonlyMap<string, unknown> | null,
): Promise<PlannedApp[]> {
  const own = [...apps.values()].map((app) => ({ appFolder: segment(app.key), app }));
  if (!hasAllApps) return own;
  const known = layout.kind === "earlier" ? [...layout.notes.keys()] : await listAppFolders(store);
  const folders = new Set([...known, ...(listed?.keys() ?? [])]);
  for (const { appFolder } of own) folders.delete(appFolder);
  return [...own, ...[...folders].map((appFolder) => ({ appFolder, app: null }))];
}

export async function collectRefusals(
  store: Store,
  tree: LocalTree,
  previews: readonly Preview[],
  options: Limits,
): Promise<Error[]> {
  const newer: Error[] = [];
  await runConcurrently(options.allowOlder ? [] : previews, APPS_AT_ONCE, async ({ plan, before }) => {
    const error = await findNewer(store, tree, plan, before);
    if (error !== null) newer.push(error);
  });
  const plans = previews.map(({ plan }) => plan);
  return [...newer.slice(0, 1), ...findRefusals(plans, tree.localMedia, options)];
}
