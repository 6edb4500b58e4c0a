/**
 * Records what a deploy is about to do: `.precast/journal.json`, written before the deploy touches anything and removed
 * when everything is done and no purge is owed. If a deploy dies, its journal tells the next one for which files not to
 * trust the manifest, and what was not purged.
 */
import { areAppKeys, type FileDigest, type FileDigests, isTreeFile } from "../../shared/tree.ts";
import type { LocalTree } from "./local-tree.ts";
import { type DigestList, listDigests, type Manifest, type Plan, readDigests, type UploadOptions } from "./manifest.ts";
import { putPrivateFile, STORE_FOLDER, type Store } from "./store.ts";

const FORMAT = 1;

export const JOURNAL = `${STORE_FOLDER}/journal.json`;

export type Journal = {
  /** Generation number of the manifest that the deploy writes. */
  readonly generation: number;
  /** Unique id of the deploy. */
  readonly deploy: string;
  /** Headers that the deploy gives its files. */
  readonly cacheControl: string;
  readonly cdnCacheControl: string;
  readonly writes: readonly string[];
  /** Those of `writes` that earlier, interrupted deploys uploaded already, with the content and headers wanted now. */
  readonly uploaded: FileDigests;
  readonly removes: readonly string[];
  /** Whether the deploy purges a CDN: then a purge of `writes` and `removes` is owed. */
  readonly purging: boolean;
  /** Paths that earlier deploys changed and did not purge. */
  readonly purges: readonly string[];
  /** Keys of the apps that all these paths belong to. The next manifest may lack some of them. */
  readonly apps: readonly string[];
};

type JournalJson = Omit<Journal, "cacheControl" | "cdnCacheControl" | "uploaded"> & {
  readonly format: number;
  readonly cache_control: string;
  readonly cdn_cache_control: string;
  readonly uploaded: DigestList;
};

export function writeJournal({ cacheControl, cdnCacheControl, uploaded, ...rest }: Journal): string {
  const headers = { cache_control: cacheControl, cdn_cache_control: cdnCacheControl };
  const json: JournalJson = { format: FORMAT, ...rest, ...headers, uploaded: listDigests(uploaded) };
  return `${JSON.stringify(json)}\n`;
}

/** Null if broken, of another format, or with a path that is no tree file: a deploy may delete the paths in it. */
export function readJournal(text: string): Journal | null {
  try {
    const json = JSON.parse(text) as JournalJson;
    const { format, cache_control: cacheControl, cdn_cache_control: cdnCacheControl, uploaded, ...rest } = json;
    const paths = [rest.writes, rest.removes, rest.purges];
    const isWhole = paths.every(Array.isArray) && paths.flat().every(isTreeFile) && areAppKeys(rest.apps);
    if (format !== FORMAT || !isWhole || !Number.isInteger(rest.generation)) return null;
    return { ...rest, cacheControl, cdnCacheControl, uploaded: readDigests(uploaded) };
  } catch {
    return null;
  }
}

/** Paths that may exist or not, with any content, when the manifest has this generation. */
export function uncertainIn(journal: Journal, generation: number): readonly string[] {
  return journal.generation > generation ? [...journal.writes, ...journal.removes] : journal.removes;
}

/** Paths of which a CDN may still have an old version. */
export function unpurgedIn({ writes, removes, purges }: Journal): readonly string[] {
  return [...new Set([...writes, ...removes, ...purges])];
}

/** Paths whose purge is owed. A deploy that does not purge must keep them in the journal. */
export function owedIn(journal: Journal): readonly string[] {
  return journal.purging ? unpurgedIn(journal) : journal.purges;
}

// The journal of a change to a store: what is written before the change, and what of it stays behind it. The format
// is that of journal.ts.

/** What a deploy changes in a store, and why. */
export type StoreChange = Pick<UploadOptions, "cacheControl" | "cdnCacheControl"> & {
  readonly tree: LocalTree;
  readonly before: StoreContents;
  readonly plan: Plan;
  /** Generation number of the manifest that the store has after this deploy. */
  readonly generation: number;
  /** Unique id of this deploy. Its journal and its checkpoints contain it. */
  readonly deploy: string;
  /**
   * Whether the store has to change at all. This can be true for an empty plan: the manifest may lack files that an
   * interrupted deploy uploaded.
   */
  readonly hasChanges: boolean;
  /** Whether this deploy purges a CDN. */
  readonly purging: boolean;
  /** Paths that earlier deploys left to be purged. */
  readonly unpurged: readonly string[];
  /** Keys of all apps that the paths in this change may belong to. */
  readonly apps: readonly string[];
};

/** The journal that a change begins with. */
export function journalOf({ plan, before, ...change }: StoreChange): Journal {
  const { generation, deploy, cacheControl, cdnCacheControl, purging, unpurged, apps } = change;
  const [planned, removes] = [plan.writes.flat().map(({ path }) => path), plan.removes.flat()];
  const touched = new Set([...planned, ...removes]);
  // Uploads of interrupted deploys that still count: the manifest lists them only once this deploy has replaced it.
  const uploaded = new Map([...before.uploaded].filter(([path]) => !touched.has(path)));
  const writes = [...planned, ...uploaded.keys()];
  return {
    generation,
    deploy,
    cacheControl,
    cdnCacheControl,
    writes,
    removes,
    uploaded,
    purging,
    purges: unpurged,
    apps,
  };
}

/**
 * The last step of a deploy: removes checkpoints and journal. A deploy that does not purge leaves a journal if earlier
 * deploys owe a purge: the next deploy that purges makes up for it.
 */
export async function endJournal(
  store: Store,
  change: StoreChange,
  checkpointCount: number,
  throwIfStopped: () => void,
): Promise<void> {
  const { purging, unpurged, before, hasChanges } = change;
  // Checkpoints go first: without a journal, no deploy looks for them.
  await removeCheckpoints(store, checkpointCount, throwIfStopped);
  if (purging || unpurged.length === 0) {
    if (before.journal !== null || hasChanges) await store.remove(JOURNAL, throwIfStopped);
  } else if (hasChanges) {
    await writeOwed(store, change, unpurged, throwIfStopped);
  }
}

/** Replaces the journal with one that lists nothing but paths to purge: all uploads and deletions are done. */
export async function writeOwed(
  store: Store,
  change: StoreChange,
  unpurged: readonly string[],
  throwIfStopped: () => void,
): Promise<void> {
  const text = writeJournal({ ...journalOf(change), writes: [], removes: [], uploaded: new Map(), purges: unpurged });
  await putPrivateFile(store, JOURNAL, text, { throwIfStopped });
}

// Records which files a deploy has uploaded so far: `.precast/checkpoints/0.json`, `1.json` and so on, written during
// the deploy and removed at its end. After an interruption, the next deploy does not upload these files again.

export type Checkpoints = {
  /** Records an uploaded file. If it fills a checkpoint, resolves once that is written. Throws what the store does. */
  readonly add: (path: string, digest: FileDigest) => Promise<void>;
  /** Number of recorded files (`files`) and of checkpoint files written (`checkpointCount`). */
  readonly progress: () => { readonly files: number; readonly checkpointCount: number };
};

type CheckpointOptions = {
  /** Unique id of the deploy, as in its journal. */
  readonly deploy: string;
  /** Number of uploaded files per checkpoint. */
  readonly filesPerCheckpoint: number;
  readonly throwIfStopped: () => void;
};

type Checkpoint = { readonly deploy: string; readonly files: DigestList };

function keyOf(number: number): string {
  return `${STORE_FOLDER}/checkpoints/${number}.json`;
}

export function openCheckpoints(
  store: Store,
  { deploy, filesPerCheckpoint, throwIfStopped }: CheckpointOptions,
): Checkpoints {
  let pending = new Map<string, FileDigest>();
  let checkpointCount = 0;
  let files = 0;
  // Checkpoints are written one after another: readers stop at the first missing number.
  let last = Promise.resolve();

  async function write(digests: ReadonlyMap<string, FileDigest>): Promise<void> {
    const checkpoint: Checkpoint = { deploy, files: listDigests(digests) };
    await putPrivateFile(store, keyOf(checkpointCount), `${JSON.stringify(checkpoint)}\n`, { throwIfStopped });
    checkpointCount += 1;
    files += digests.size;
  }

  return {
    add: (path, digest) => {
      pending.set(path, digest);
      if (pending.size < filesPerCheckpoint) return Promise.resolve();
      const full = pending;
      pending = new Map();
      last = last.then(() => write(full));
      return last;
    },
    progress: () => ({ files, checkpointCount }),
  };
}

/** Returns the files that the given deploy has recorded, and the number of checkpoint files of all deploys. */
export async function readCheckpoints(
  store: Store,
  deploy: string | null,
): Promise<{ readonly files: ReadonlyMap<string, FileDigest>; readonly checkpointCount: number }> {
  const files = new Map<string, FileDigest>();
  for (let checkpointCount = 0; ; checkpointCount++) {
    const stored = await store.get(keyOf(checkpointCount));
    if (stored === null) return { files, checkpointCount };
    const checkpoint = parseCheckpoint(stored.bytes.toString("utf8"));
    if (checkpoint?.deploy === deploy) for (const [path, digest] of checkpoint.files) files.set(path, digest);
  }
}

function parseCheckpoint(
  text: string,
): { readonly deploy: string; readonly files: ReadonlyMap<string, FileDigest> } | null {
  try {
    const { deploy, files } = JSON.parse(text) as Checkpoint;
    return { deploy, files: readDigests(files) };
  } catch {
    return null;
  }
}

/** Removes from the last to the first, so that after an interruption the rest has no gap and is found again. */
async function removeCheckpoints(store: Store, checkpointCount: number, throwIfStopped: () => void): Promise<void> {
  for (let number = checkpointCount - 1; number >= 0; number--) await store.remove(keyOf(number), throwIfStopped);
}

export type StoreContents = {
  readonly manifest: Manifest | null;
  readonly journal: Journal | null;
  /** ETags of the two files, even if they cannot be used; null for a file that does not exist. */
  readonly etags: { readonly manifest: string | null; readonly journal: string | null };
  /** Files that certainly exist with this content and the wanted headers. */
  readonly certain: FileDigests;
  /** Those of `certain` that the manifest does not list: interrupted deploys have uploaded them. */
  readonly uploaded: FileDigests;
  /** Number of checkpoint files in the store. */
  readonly checkpointCount: number;
  /** Paths that may exist, with any content and headers. */
  readonly uncertainPaths: ReadonlySet<string>;
  /** Paths at which clients find a file already, whatever its content. */
  readonly visiblePaths: ReadonlySet<string>;
};
