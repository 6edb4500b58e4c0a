/** Files and folders of a tree: read, listed, put in place and removed. */
import {
  copyFileSync,
  type Dir,
  lstatSync,
  mkdirSync,
  opendirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  utimesSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { breathe } from "./breath.ts";

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

/** Every file below a folder, as relative paths with `/`; none when there is no folder. Throws where the root can be none. */
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

/** Of all calls of the system this one alone does not say which file it was about. */
function openFolder(path: string): Dir {
  try {
    return opendirSync(path);
  } catch (error) {
    throw Object.assign(error as Error, { path });
  }
}

/** Moves a file to its place below `root`, whatever stands in its way there. One that is there no more was moved already. */
export function moveInto(root: string, path: string, from: string, made: Set<string>): void {
  try {
    move(from, join(root, path), made);
  } catch (error) {
    if (!["EISDIR", "ENOTDIR", "EEXIST", "ENOTEMPTY"].includes(codeOf(error))) throw error;
    clearWay(root, path);
    move(from, join(root, path), made);
  }
}

function move(from: string, to: string, made: Set<string>): void {
  const folder = dirname(to);
  if (!made.has(folder)) {
    mkdirSync(folder, { recursive: true });
    made.add(folder);
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

/** The folder of an app may be on another disk: there too, what has the name is whole. */
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

/** Removes a folder in the place of the file, or files in the place of its folders. */
function clearWay(root: string, path: string): void {
  const file = join(root, path);
  if (isFolder(file)) rmSync(file, { recursive: true });
  for (let folder = dirname(path); folder !== "."; folder = dirname(folder)) {
    if (!isFolder(join(root, folder)) && exists(join(root, folder))) rmSync(join(root, folder));
  }
}

/** Removes a file and the folders that it leaves empty. Where it stood in the way of a folder, it is gone already. */
export function removeFrom(root: string, path: string): void {
  if (isFolder(join(root, path))) return;
  rmSync(join(root, path), { force: true });
  for (let folder = dirname(path); folder !== "."; folder = dirname(folder)) {
    try {
      rmdirSync(join(root, folder));
    } catch (error) {
      // One that has gone may have left its own folder empty.
      if (codeOf(error) !== "ENOENT") return;
    }
  }
}

/** Removes a folder with all that is in it, if it is there. */
export async function removeAll(folder: string): Promise<void> {
  if (!isFolder(folder)) return;
  const entries = openFolder(folder);
  try {
    for (let entry = entries.readSync(); entry !== null; entry = entries.readSync()) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) await removeAll(path);
      else rmSync(path, { force: true });
      await breathe();
    }
  } finally {
    entries.closeSync();
  }
  // Of a folder that shrinks meanwhile, not every file system tells all.
  rmSync(folder, { recursive: true, force: true });
}

/** Removes what holds no file: folders below, and then this one. False where it stays. */
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

export function exists(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    if (codeOf(error) === "ENOTDIR") return false;
    throw error;
  }
}

/** Also by links. */
function leadsToFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

export function isFolder(path: string): boolean {
  return exists(path) && lstatSync(path).isDirectory();
}

export function isFile(path: string): boolean {
  return exists(path) && lstatSync(path).isFile();
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? "";
}

/**
 * What web servers make ETags of is the size and the second of the last change: another content of the same size gets a later
 * second.
 */
export function makeNewer(file: string, former: string): void {
  const next = Math.floor((statSync(former, { throwIfNoEntry: false })?.mtimeMs ?? 0) / 1_000) + 1;
  if (statSync(file).mtimeMs < next * 1_000) utimesSync(file, next, next);
}
