/**
 * Restores a tree from where it was deployed, for a build without a local one: fetches the state files of the apps, and
 * of the other files only those that the build asks for. Each is checked against the manifest. With them the build is
 * incremental.
 */
import { join } from "node:path";
import { outputFileSync, removeSync } from "fs-extra/esm";
import { segment } from "../../shared/api/address.ts";
import { runConcurrently } from "../../shared/async.ts";
import type { Database } from "../../shared/database/database.ts";
import { takeLock } from "../../shared/lock.ts";
import {
  BUILD_LOCK,
  builtAppKeys,
  digestBytes,
  type FileDigest,
  nameStateFile,
  readStateAt,
  type TreeState,
} from "../../shared/tree.ts";
import { isStatePath } from "../../shared/tree-file.ts";
import { ForeignTreeError } from "../builder/built.ts";
import { findIncompatibility, listFirstFiles, readSource } from "../builder/delta.ts";
import { discardStages } from "../builder/publish.ts";
import { type Fetch, openRemoteFiles, type RemoteFiles, readRemoteFiles, writeRemoteFiles } from "../builder/remote.ts";
import { listAppFolders, readLayout } from "./layout.ts";
import { type Manifest, type Notes, readNotes, UnreadableStoreError } from "./manifest.ts";
import type { Store } from "./store.ts";

export type RestoreOptions = {
  readonly out: string;
  readonly concurrency: number;
  /** What is deployed is only restored if builds of this database can continue from it. */
  readonly database: Pick<Database, "transaction">;
};

/** A restored tree with the number of files that were deployed for it, or the reason why there is none. */
export type Restored =
  | { readonly kind: "restored"; readonly remote: RemoteFiles; readonly files: number }
  | { readonly kind: "nothing"; readonly reason: string };

/**
 * Returns a reason if the store has nothing that a build can use. Throws RemoteFault when the store cannot be read, and
 * LockedError while another build is running.
 */
export async function restoreTree(store: Store, options: RestoreOptions): Promise<Restored> {
  const { out } = options;
  if (builtAppKeys(out).length > 0 && readRemoteFiles(out)?.size === 0)
    return nothing("the tree already exists locally");
  const lock = takeLock(join(out, BUILD_LOCK));
  try {
    const manifests = await readManifests(store, options.concurrency);
    if (manifests.length === 0) return nothing("nothing is deployed there yet");
    return await restoreFiles(store, new Map(manifests.flatMap(({ files }) => [...files])), options);
  } catch (error) {
    if (error instanceof UnreadableStoreError) return nothing(error.message);
    if (!(error instanceof ForeignTreeError)) throw error;
    const causes = "a deploy is running or was interrupted, or somebody changed the store";
    return nothing(`${error.message}: ${causes}: \`precast deploy --force\` repairs that`);
  } finally {
    lock.release();
  }
}

/** Those of all apps, in the order of their folders. */
async function readManifests(store: Store, concurrency: number): Promise<Manifest[]> {
  const layout = await readLayout(store, false);
  if (layout.kind === "earlier") return [...layout.notes.values()].flatMap(({ manifest }) => manifest ?? []);
  const folders = layout.kind === "new" ? [] : await listAppFolders(store);
  const notes = new Map<string, Notes>();
  await runConcurrently(folders, concurrency, async (folder) => {
    notes.set(folder, await readNotes(store, folder, { force: false }));
  });
  return folders.flatMap((folder) => notes.get(folder)?.manifest ?? []);
}

function nothing(reason: string): Restored {
  return { kind: "nothing", reason };
}

/** Throws ForeignTreeError when a file that it fetches is not the one of the manifest. */
export async function restoreFiles(
  store: Store,
  files: ReadonlyMap<string, FileDigest>,
  { out, concurrency, database }: RestoreOptions,
): Promise<Restored> {
  const states = await fetchStates(store, files);
  const known = states.map(({ state }) => state);
  const source = await database.transaction("read", (session) => readSource(session, known));
  const problemOf = (state: TreeState) => findIncompatibility(state, source);
  const usable = states.filter(({ state }) => problemOf(state) === null);
  if (usable.length === 0)
    return nothing(states[0] === undefined ? "it contains no app" : (problemOf(states[0].state) ?? ""));
  const appFolders = new Set(usable.map(({ state }) => segment(state.app.key)));
  const deployed = [...files].filter(([path]) => appFolders.has(path.slice(0, path.indexOf("/"))));
  discardStages(out);
  removeEarlier(out, appFolders);
  writeRemoteFiles(out, new Map(deployed));
  // Its state file lets the build find an app that the database has deleted. An app without its files is built in full.
  for (const { path, content } of usable) outputFileSync(join(out, path), content);
  const remote = openRemoteFiles(out, fetchFrom(store, concurrency));
  await remote.fetchFiles(usable.flatMap(({ state }) => listFirstFiles(state.app)));
  return { kind: "restored", remote, files: deployed.length };
}

/** Removes what an earlier build or restore has left in `out`. */
function removeEarlier(out: string, appFolders: ReadonlySet<string>): void {
  const earlierKeys = builtAppKeys(out);
  for (const key of earlierKeys) removeSync(join(out, nameStateFile(key)));
  for (const folder of [...appFolders, ...earlierKeys.map(segment)]) removeSync(join(out, folder));
}

export function fetchFrom(store: Store, concurrency: number): Fetch {
  return (paths, take) =>
    runConcurrently(paths, concurrency, async (path) => take(path, (await store.get(path))?.bytes ?? null));
}

type FetchedState = { readonly path: string; readonly content: Buffer; readonly state: TreeState };

async function fetchStates(store: Store, files: ReadonlyMap<string, FileDigest>): Promise<FetchedState[]> {
  const states: FetchedState[] = [];
  for (const [path, { sha256 }] of files) {
    if (!isStatePath(path)) continue;
    const content = (await store.get(path))?.bytes;
    if (content === undefined || digestBytes(content).sha256 !== sha256) throw new ForeignTreeError(path);
    const state = readStateAt(path, content.toString("utf8"));
    if (state !== null) states.push({ path, content, state });
  }
  return states;
}
