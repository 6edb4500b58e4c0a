/**
 * Records which files a deploy has uploaded so far: `.precast/checkpoints/0.json`, `1.json` and so on, written during
 * the deploy and removed at its end. After an interruption, the next deploy does not upload these files again.
 */
import type { FileDigest } from "../build/file-digest.ts";
import { listMarks, type MarkList, readMarks } from "./digest-list.ts";
import { putNote } from "./store/private-file.ts";
import { STORE_FOLDER, type Store } from "./store/store.ts";

export type Checkpoints = {
  /** Records an uploaded file. If it fills a checkpoint, resolves once that is written. Throws what the store does. */
  readonly add: (path: string, mark: FileDigest) => Promise<void>;
  /** Number of recorded files (`files`) and of checkpoint files written (`notes`). */
  readonly standing: () => { readonly files: number; readonly notes: number };
};

export type CheckpointOptions = {
  /** Unique id of the deploy, as in its journal. */
  readonly deploy: string;
  /** Number of uploaded files per checkpoint. */
  readonly every: number;
  readonly permit: () => void;
};

type Note = { readonly deploy: string; readonly files: MarkList };

function keyOf(number: number): string {
  return `${STORE_FOLDER}/checkpoints/${number}.json`;
}

export function openCheckpoints(store: Store, { deploy, every, permit }: CheckpointOptions): Checkpoints {
  let pending = new Map<string, FileDigest>();
  let notes = 0;
  let files = 0;
  // Checkpoints are written one after another: readers stop at the first missing number.
  let last = Promise.resolve();

  async function write(marks: ReadonlyMap<string, FileDigest>): Promise<void> {
    const note: Note = { deploy, files: listMarks(marks) };
    await putNote(store, keyOf(notes), `${JSON.stringify(note)}\n`, { permit });
    notes += 1;
    files += marks.size;
  }

  return {
    add: (path, mark) => {
      pending.set(path, mark);
      if (pending.size < every) return Promise.resolve();
      const full = pending;
      pending = new Map();
      last = last.then(() => write(full));
      return last;
    },
    standing: () => ({ files, notes }),
  };
}

/** Returns the files that the given deploy has recorded, and the number of checkpoint files of all deploys. */
export async function readCheckpoints(
  store: Store,
  deploy: string | null,
): Promise<{ readonly files: ReadonlyMap<string, FileDigest>; readonly notes: number }> {
  const files = new Map<string, FileDigest>();
  for (let notes = 0; ; notes++) {
    const stored = await store.get(keyOf(notes));
    if (stored === null) return { files, notes };
    const note = readNote(stored.bytes.toString("utf8"));
    if (note?.deploy === deploy) for (const [path, mark] of note.files) files.set(path, mark);
  }
}

function readNote(text: string): { readonly deploy: string; readonly files: ReadonlyMap<string, FileDigest> } | null {
  try {
    const { deploy, files } = JSON.parse(text) as Note;
    return { deploy, files: readMarks(files) };
  } catch {
    return null;
  }
}

/** Removes from the last to the first, so that after an interruption the rest has no gap and is found again. */
export async function removeCheckpoints(store: Store, notes: number, permit: () => void): Promise<void> {
  for (let number = notes - 1; number >= 0; number--) await store.remove(keyOf(number), permit);
}
