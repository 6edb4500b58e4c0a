/**
 * What a build throws away, in a folder of its own until it is deleted: file systems are slow to write where much has just
 * been deleted, and slow to rename where each new file frees the blocks of an old one.
 */
import { randomUUID } from "node:crypto";
import { linkSync, mkdirSync, renameSync } from "node:fs";
import { unlink } from "node:fs/promises";
import { join } from "node:path";
import { STATE_FOLDER } from "../../../shared/state.ts";
import { removeAll } from "./folder.ts";

const TRASH = `${STATE_FOLDER}/trash`;

/** A name that nothing in the trash has: a build that died may have left some of it. */
function freshName(out: string): string {
  const trash = join(out, TRASH);
  mkdirSync(trash, { recursive: true });
  return join(trash, randomUUID());
}

/** Moves a folder of the tree into the trash. */
export function putAside(out: string, folder: string): void {
  renameSync(join(out, folder), freshName(out));
}

/** Files that are about to be replaced. */
export type Replaced = {
  /** Gives the file a second name, with which it outlives being replaced. Not every file system can; then it does not. */
  readonly hold: (file: string) => void;
  /** Deletes, in other threads, what has been replaced. Resolves soon, unless much is not deleted yet. */
  readonly release: () => Promise<void>;
  readonly settle: () => Promise<unknown>;
};

/** So many files are deleted side by side. */
const BATCH = 128;

export function openReplaced(out: string): Replaced {
  let folder: string | null = null;
  let held: string[] = [];
  let releasing: Promise<unknown> = Promise.resolve();
  let files = 0;

  const hold = (file: string) => {
    folder ??= freshFolder(out);
    const name = join(folder, String(files++));
    try {
      linkSync(file, name);
      held.push(name);
    } catch {
      // Then its blocks are freed when it is replaced.
    }
  };
  const releaseAll = async () => {
    const names = held;
    held = [];
    await releasing;
    // What stays is deleted with the trash, which tells why it can't be.
    releasing = Promise.allSettled(names.map((name) => unlink(name)));
  };
  const release = async () => {
    if (held.length >= BATCH) await releaseAll();
  };
  return { hold, release, settle: () => releaseAll().then(() => releasing) };
}

function freshFolder(out: string): string {
  const folder = freshName(out);
  mkdirSync(folder);
  return folder;
}

export function emptyTrash(out: string): Promise<void> {
  return removeAll(join(out, TRASH));
}
