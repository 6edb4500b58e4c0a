/** Moves files to their places in a tree, whatever is in the way there. */
import { copyFileSync, mkdirSync, renameSync, rmSync, statSync, utimesSync } from "node:fs";
import { dirname, join } from "node:path";
import { codeOf, exists, isFolder } from "./file.ts";

/**
 * Moves a file to `path` below `root` and removes whatever is in the way there. Does nothing when `from` does not
 * exist, because an earlier attempt has moved it. `existingFolders` is a cache.
 */
export function moveInto(root: string, path: string, from: string, existingFolders: Set<string>): void {
  try {
    move(from, join(root, path), existingFolders);
  } catch (error) {
    if (!["EISDIR", "ENOTDIR", "EEXIST", "ENOTEMPTY"].includes(codeOf(error))) throw error;
    clearWay(root, path);
    move(from, join(root, path), existingFolders);
  }
}

function move(from: string, to: string, existingFolders: Set<string>): void {
  const folder = dirname(to);
  if (!existingFolders.has(folder)) {
    mkdirSync(folder, { recursive: true });
    existingFolders.add(folder);
  }
  try {
    rename(from, to);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
    if (!exists(from)) return;
    // Somebody has removed the folder since.
    mkdirSync(folder, { recursive: true });
    rename(from, to);
  }
}

/** If the folder of the app is on another disk, copies to a temporary name first: the file is never seen incomplete. */
function rename(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if (!isOtherDisk(error)) throw error;
    const part = `${to}.part`;
    copyFileSync(from, part);
    const { atime, mtime } = statSync(from);
    utimesSync(part, atime, mtime);
    renameSync(part, to);
    rmSync(from);
  }
}

/** Whether a rename failed because its two names are on two disks. */
export function isOtherDisk(error: unknown): boolean {
  return codeOf(error) === "EXDEV";
}

/** Removes a folder that has the path of the file, and files that have the paths of its parent folders. */
function clearWay(root: string, path: string): void {
  const file = join(root, path);
  if (isFolder(file)) rmSync(file, { recursive: true });
  for (let folder = dirname(path); folder !== "."; folder = dirname(folder)) {
    if (!isFolder(join(root, folder)) && exists(join(root, folder))) rmSync(join(root, folder));
  }
}
