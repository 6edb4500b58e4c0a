/** Lists and removes the files and folders of a tree. */
import { type Dir, opendirSync, readdirSync, rmdirSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { yieldToEventLoop } from "./event-loop.ts";
import { codeOf, isFolder } from "./file.ts";

/**
 * Yields every file below a folder, as a path relative to `root` with `/`. Yields nothing when the folder does not
 * exist; throws when `root` exists but is not a folder.
 */
export function* filesIn(root: string, below = ""): Generator<string> {
  let folder: Dir;
  try {
    folder = openFolder(join(root, below));
  } catch (error) {
    if (codeOf(error) === "ENOENT" || (codeOf(error) === "ENOTDIR" && below !== "" && leadsToFolder(root))) return;
    throw error;
  }
  try {
    for (let entry = folder.readSync(); entry !== null; entry = folder.readSync()) {
      const path = below === "" ? entry.name : `${below}/${entry.name}`;
      if (entry.isDirectory()) yield* filesIn(root, path);
      else yield path;
    }
  } finally {
    folder.closeSync();
  }
}

/** Names in a folder; none when it does not exist. Throws when it exists but cannot be read. */
export function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(codeOf(error))) return [];
    throw error;
  }
}

/** Adds the path to the error, because `opendirSync`, unlike the other functions used here, does not. */
function openFolder(path: string): Dir {
  try {
    return opendirSync(path);
  } catch (error) {
    throw Object.assign(error as Error, { path });
  }
}

/** Removes a file and the folders that it leaves empty. Leaves a folder that has replaced the file. */
export function removeFrom(root: string, path: string): void {
  if (isFolder(join(root, path))) return;
  rmSync(join(root, path), { force: true });
  for (let folder = dirname(path); folder !== "."; folder = dirname(folder)) {
    try {
      rmdirSync(join(root, folder));
    } catch (error) {
      // When this folder is already gone, its parent may be empty.
      if (codeOf(error) !== "ENOENT") return;
    }
  }
}

/** Removes a folder and everything in it, if it exists. */
export async function removeAll(folder: string): Promise<void> {
  if (!isFolder(folder)) return;
  const entries = openFolder(folder);
  try {
    for (let entry = entries.readSync(); entry !== null; entry = entries.readSync()) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) await removeAll(path);
      else rmSync(path, { force: true });
      await yieldToEventLoop();
    }
  } finally {
    entries.closeSync();
  }
  // Some file systems do not list all entries of a folder that shrinks meanwhile.
  rmSync(folder, { recursive: true, force: true });
}

/** Removes the folders below that hold no file, and then this folder if it is empty. Returns false when it stays. */
export function removeEmpty(folder: string): boolean {
  const entries = openFolder(folder);
  let stays = false;
  try {
    for (let entry = entries.readSync(); entry !== null; entry = entries.readSync()) {
      if (!entry.isDirectory() || !removeEmpty(join(folder, entry.name))) stays = true;
    }
  } finally {
    entries.closeSync();
  }
  if (!stays) rmdirSync(folder);
  return !stays;
}

/** Whether a path is a folder, or a link to one. */
function leadsToFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
