/**
 * Brings a tree back from where it was deployed, for a build that has none here: with it the build is incremental. Every
 * file is fetched and compared with the manifest, and nothing becomes a tree before all are there.
 */
import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { segment } from "../../shared/address.ts";
import { takeLock } from "../../shared/database/lock.ts";
import { readState, STATE_FOLDER, type TreeState } from "../../shared/state.ts";
import { builtApps } from "../build/selection.ts";
import { markOf } from "./local-tree.ts";
import { type FileMark, MANIFEST, readManifest } from "./manifest.ts";
import { sideBySide } from "./side-by-side.ts";
import type { Store } from "./store.ts";
import { isStatePath } from "./tree-file.ts";

export type RestoreOptions = {
  readonly out: string;
  readonly concurrency: number;
  /** Null for a state from which a build can go on, else why not. */
  readonly problemOf: (state: TreeState) => string | null;
  readonly onProgress?: ((progress: { files: number; totalFiles: number; bytes: number }) => void) | undefined;
};

export type Restored = {
  readonly files: number;
  readonly bytes: number;
  /** Why nothing was fetched; null where something was. */
  readonly reason: string | null;
};

/** Where files wait until all are there. */
const FETCHED = `${STATE_FOLDER}/fetched`;

/** What the store has is not what its manifest tells: it was changed by hand, or a deploy goes on or has died. */
class ForeignStoreError extends Error {}

/** Throws RemoteFault when the store can't be read. What it has and can't be used is a reason. */
export async function restoreTree(store: Store, options: RestoreOptions): Promise<Restored> {
  if (builtApps(options.out).length > 0) return nothing("the tree is here");
  const stored = await store.get(MANIFEST);
  if (stored === null) return nothing("nothing is deployed there yet");
  const manifest = readManifest(stored.bytes.toString("utf8"));
  if (manifest === null) return nothing("its manifest is broken or of another version of Precast");
  const unlock = takeLock(join(options.out, STATE_FOLDER, "build.lock"));
  try {
    return await fetchTree(store, manifest.files, options);
  } catch (error) {
    if (!(error instanceof ForeignStoreError)) throw error;
    return nothing(error.message);
  } finally {
    unlock();
  }
}

function nothing(reason: string): Restored {
  return { files: 0, bytes: 0, reason };
}

async function fetchTree(
  store: Store,
  files: ReadonlyMap<string, FileMark>,
  { out, concurrency, problemOf, onProgress }: RestoreOptions,
): Promise<Restored> {
  const states = await fetchStates(store, files);
  const usable = states.filter(({ state }) => problemOf(state) === null);
  if (usable.length === 0)
    return nothing(states[0] === undefined ? "it has no app" : (problemOf(states[0].state) ?? ""));
  const tops = new Map(usable.map((one) => [segment(one.state.app.key), one]));
  const wanted = [...files].filter(([path]) => tops.has(path.slice(0, path.indexOf("/"))));
  const aside = join(out, FETCHED);
  let [fetched, bytes] = [0, 0];
  try {
    rmSync(aside, { recursive: true, force: true });
    await sideBySide(wanted, concurrency, async ([path, mark]) => {
      writeInto(aside, path, await fetchFile(store, path, mark));
      fetched += 1;
      bytes += mark.size;
      onProgress?.({ files: fetched, totalFiles: wanted.length, bytes });
    });
    for (const [top, { path, content }] of tops) {
      // A state whose files are not there has its app built in full; files without a state would never go.
      writeInto(out, path, content);
      rmSync(join(out, top), { recursive: true, force: true });
      renameSync(join(aside, top), join(out, top));
    }
  } finally {
    rmSync(aside, { recursive: true, force: true });
  }
  return { files: fetched, bytes, reason: null };
}

type FetchedState = { readonly path: string; readonly content: Buffer; readonly state: TreeState };

async function fetchStates(store: Store, files: ReadonlyMap<string, FileMark>): Promise<FetchedState[]> {
  const states: FetchedState[] = [];
  for (const [path, mark] of files) {
    if (!isStatePath(path)) continue;
    const content = await fetchFile(store, path, mark);
    const state = readState(content.toString("utf8"));
    if (state !== null) states.push({ path, content, state });
  }
  return states;
}

async function fetchFile(store: Store, path: string, { sha256 }: FileMark): Promise<Buffer> {
  const bytes = (await store.get(path))?.bytes;
  if (bytes !== undefined && markOf(bytes).sha256 === sha256) return bytes;
  throw new ForeignStoreError(`${path} is not there as its manifest tells: a deploy goes on or has died`);
}

function writeInto(out: string, path: string, bytes: Buffer): void {
  mkdirSync(dirname(join(out, path)), { recursive: true });
  writeFileSync(join(out, path), bytes);
}
