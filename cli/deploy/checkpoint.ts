/**
 * Records which files a deploy has uploaded so far: `.precast/checkpoints/0.json`, `1.json` and so on, written during
 * the deploy and removed at its end. After an interruption, the next deploy does not upload these files again.
 */
import type { FileDigest } from "../build/file-digest.ts";
import { type DigestList, listDigests, readDigests } from "./digest-list.ts";
import { putPrivateFile } from "./store/private-file.ts";
import { STORE_FOLDER, type Store } from "./store/store.ts";

export type Checkpoints = {
  /** Records an uploaded file. If it fills a checkpoint, resolves once that is written. Throws what the store does. */
  readonly add: (path: string, digest: FileDigest) => Promise<void>;
  /** Number of recorded files (`files`) and of checkpoint files written (`checkpointCount`). */
  readonly progress: () => { readonly files: number; readonly checkpointCount: number };
};

export type CheckpointOptions = {
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
export async function removeCheckpoints(
  store: Store,
  checkpointCount: number,
  throwIfStopped: () => void,
): Promise<void> {
  for (let number = checkpointCount - 1; number >= 0; number--) await store.remove(keyOf(number), throwIfStopped);
}
