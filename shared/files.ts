/** Tells what is at a path, and reads files of a tree. */
import {
  copyFileSync,
  type Dir,
  lstatSync,
  mkdirSync,
  opendirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  utimesSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { setImmediate } from "node:timers/promises";

/** The bytes of a file; null where there is none. */
export function readOrNull(file: string): Buffer | null {
  try {
    return readFileSync(file);
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "EISDIR"].includes(codeOf(error))) return null;
    throw error;
  }
}

export function readText(file: string): string | null {
  return readOrNull(file)?.toString("utf8") ?? null;
}

/** How many bytes a file has; null where there is none. */
export function sizeOf(file: string): number | null {
  try {
    return lstatSync(file).size;
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(codeOf(error))) return null;
    throw error;
  }
}

export function exists(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    if (codeOf(error) === "ENOTDIR") return false;
    throw error;
  }
}

export function isFolder(path: string): boolean {
  return exists(path) && lstatSync(path).isDirectory();
}

export function isFile(path: string): boolean {
  return exists(path) && lstatSync(path).isFile();
}

/**
 * Gives `file` a modification time in a later second than that of `former`. Web servers derive ETags from the size and
 * the modification time in seconds, so new content of the same size needs another second.
 */
export function makeNewer(file: string, former: string): void {
  const next = Math.floor((statSync(former, { throwIfNoEntry: false })?.mtimeMs ?? 0) / 1_000) + 1;
  if (statSync(file).mtimeMs < next * 1_000) utimesSync(file, next, next);
}

/** The code of a failed system call, as `ENOENT`. */
function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? "";
}

// Lists and removes the files and folders of a tree.

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

// Moves files to their places in a tree, whatever is in the way there.

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

// Lets other work of the process run during a long loop: the process may be a server that also builds.

/** Milliseconds after which other work gets a turn. */
const MAX_TURN = 10;

let turnStart = performance.now();

/** To be called in each step of a long loop. Resolves at once, unless other work has waited for `MAX_TURN`. */
export async function yieldToEventLoop(): Promise<void> {
  if (performance.now() - turnStart < MAX_TURN) return;
  await setImmediate();
  turnStart = performance.now();
}
