/**
 * Collects what a build throws away in a folder of its own and deletes it late: file systems write slowly where much
 * has just been deleted, and rename slowly where each new file frees the blocks of an old one.
 */
import { randomUUID } from "node:crypto";
import { linkSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { unlink } from "node:fs/promises";
import { join } from "node:path";
import { isOtherDisk, removeAll } from "../../shared/files.ts";
import { STATE_FOLDER } from "../../shared/tree.ts";

const TRASH = `${STATE_FOLDER}/trash`;

/** An unused path in the trash, which may still hold files of a build that died. */
function freshName(out: string): string {
  const trash = join(out, TRASH);
  mkdirSync(trash, { recursive: true });
  return join(trash, randomUUID());
}

/** Moves a folder of the tree into the trash. A container cannot move a folder of its image, so that is deleted. */
export function moveToTrash(out: string, folder: string): void {
  try {
    renameSync(join(out, folder), freshName(out));
  } catch (error) {
    if (!isOtherDisk(error)) throw error;
    rmSync(join(out, folder), { recursive: true, force: true });
  }
}

/** Files that are about to be replaced. */
type Replaced = {
  /** Gives the file a hard link in the trash, so that replacing it frees no blocks. Has no effect where links fail. */
  readonly hold: (file: string) => void;
  /** Deletes replaced files in other threads, a batch at a time. Waits only for the batch before. */
  readonly release: () => Promise<void>;
  readonly settle: () => Promise<unknown>;
};

/** Number of files that are deleted concurrently, as one batch. */
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
      // Without the link, the blocks are freed when the file is replaced.
    }
  };
  const releaseAll = async () => {
    const names = held;
    held = [];
    await releasing;
    // What could not be deleted is deleted with the whole trash, which reports the error.
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
