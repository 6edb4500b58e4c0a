/** The files of a tree on disk: reads, lists, writes, moves and removes them, whatever is in the way. */
import {
  closeSync,
  constants,
  copyFileSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { setImmediate } from "node:timers/promises";

/** The bytes of a file; null where there is none. */
export function readOrNull(file: string): Buffer | null {
  return orNull(() => readFileSync(file));
}

/** Windows has no such flag, and there a link is followed. */
const NO_LINK = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0);

/** Like readOrNull, but a link is no file. */
export function readUnlinked(file: string): Buffer | null {
  return orNull(() => {
    const descriptor = openSync(file, NO_LINK);
    try {
      return readFileSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
  }, "ELOOP");
}

function orNull<T>(read: () => T, ...codes: readonly string[]): T | null {
  try {
    return read();
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "EISDIR", ...codes].includes(findCode(error))) return null;
    throw error;
  }
}

export function readText(file: string): string | null {
  return readOrNull(file)?.toString("utf8") ?? null;
}

/** How many bytes a file has; null where there is none. */
export function readSize(file: string): number | null {
  return orNull(() => lstatSync(file).size);
}

export function exists(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    if (findCode(error) === "ENOTDIR") return false;
    throw error;
  }
}

export function isFolder(path: string): boolean {
  return exists(path) && lstatSync(path).isDirectory();
}

export function isFile(path: string): boolean {
  return exists(path) && lstatSync(path).isFile();
}

export function isLink(path: string): boolean {
  return exists(path) && lstatSync(path).isSymbolicLink();
}

/**
 * The links that stand in the place of a folder between `root` and a path below it: what is behind them is not of the
 * tree. The first folder may be a link, because that of an app may be on another disk.
 */
function findLinks(root: string, path: string): string[] {
  const [top = "", ...names] = dirname(path).split("/");
  const folders = names.map((_, index) => join(root, top, ...names.slice(0, index + 1)));
  return folders.filter(isLink);
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
function findCode(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? "";
}

/**
 * Yields every file below a folder, as a path relative to `root` with `/`; a link counts as a file. Yields nothing when
 * the folder does not exist; throws when `root` exists but is not a folder.
 */
export async function* filesIn(root: string, below = ""): AsyncGenerator<string> {
  try {
    for await (const path of await walk(join(root, below), { markDirectories: true })) {
      if (!path.endsWith("/")) yield below === "" ? path : `${below}/${path}`;
    }
  } catch (error) {
    if (findCode(error) !== "ENOTDIR" || below === "" || !leadsToFolder(root)) throw error;
  }
}

/** Sorted names in a folder that match a pattern; none when the folder does not exist. `*` leaves out hidden ones. */
export async function findNames(cwd: string, pattern: string): Promise<string[]> {
  const glob = await loadGlob();
  return (await glob(pattern, { cwd, onlyFiles: false, followSymbolicLinks: false })).sort();
}

/** The library is loaded only by commands that need it: it takes longer than the rest of a short command. */
async function loadGlob() {
  return (await import("fast-glob")).default;
}

async function walk(cwd: string, options: { markDirectories: true } | { onlyDirectories: true }) {
  const glob = await loadGlob();
  // Unlike `**`, this pattern also matches names with a line break.
  const stream = glob.stream("**/*", {
    ...{ cwd, dot: true, followSymbolicLinks: false, onlyFiles: false, unique: false },
    ...options,
  });
  return stream as AsyncIterable<string>;
}

/** Names in a folder; none when it does not exist. Throws when it exists but cannot be read. */
export function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(findCode(error))) return [];
    throw error;
  }
}

/** Removes a file and the folders that it leaves empty. Leaves a folder that has replaced the file, and what links hide. */
export function removeFrom(root: string, path: string): void {
  if (findLinks(root, path).length > 0 || isFolder(join(root, path))) return;
  rmSync(join(root, path), { force: true });
  for (let folder = dirname(path); folder !== "."; folder = dirname(folder)) {
    try {
      rmdirSync(join(root, folder));
    } catch (error) {
      // When this folder is already gone, its parent may be empty.
      if (findCode(error) !== "ENOENT") return;
    }
  }
}

/**
 * Removes a folder and everything in it, if it exists. One file after the other: `fs.rm` takes memory for all at once,
 * and three times as long.
 */
export async function removeAll(folder: string): Promise<void> {
  if (!isFolder(folder)) return;
  for await (const file of filesIn(folder)) {
    rmSync(join(folder, file), { force: true });
    await yieldToEventLoop();
  }
  rmSync(folder, { recursive: true, force: true });
}

/** Removes the folders below that hold no file, and then this folder if it is empty. */
export async function removeEmpty(folder: string): Promise<void> {
  const folders: string[] = [];
  for await (const path of await walk(folder, { onlyDirectories: true })) folders.push(path);
  for (const path of [...folders.sort().reverse(), ""]) {
    try {
      rmdirSync(join(folder, path));
    } catch (error) {
      if (!["ENOTEMPTY", "EEXIST"].includes(findCode(error))) throw error;
    }
  }
}

/** Whether a path is a folder, or a link to one. */
function leadsToFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/**
 * Writes a file that appears whole, even if the process dies: to `part` first, which is on the same disk. A file with as
 * many bytes as the one that it replaces is newer by its second.
 */
export function writeAtomic(root: string, path: string, bytes: string | Uint8Array, part: string): void {
  makeFolders(dirname(part));
  writeFileSync(part, bytes);
  if (readSize(join(root, path)) === statSync(part).size) makeNewer(part, join(root, path));
  for (const link of findLinks(root, path)) unlinkSync(link);
  // Not only when the move fails: files cost the same calls in whatever order they arrive, which tests of kills count on.
  makeFolder(root, path);
  moveInto(root, path, part);
}

/**
 * Makes a folder and its parents; returns the first that was made. Not with `recursive`: that tells a read-only disk, or
 * one without inodes, as ENOENT, and never ends where the system lets nobody make folders (/proc).
 */
export function makeFolders(folder: string, mode = 0o777): string | undefined {
  if (leadsToFolder(folder)) return undefined;
  const parent = dirname(folder);
  // A disk of Windows that is not there has no parent.
  const first = parent === folder ? undefined : makeFolders(parent, mode);
  try {
    mkdirSync(folder, mode);
  } catch (error) {
    if (!leadsToFolder(folder)) throw error;
  }
  return first ?? folder;
}

/** Makes the folder of a file below `root`, and removes whatever is in its way. */
function makeFolder(root: string, path: string): void {
  const make = () => makeFolders(dirname(join(root, path)));
  try {
    make();
  } catch (error) {
    if (!isInTheWay(error)) throw error;
    clearWay(root, path);
    make();
  }
}

function isInTheWay(error: unknown): boolean {
  return ["EISDIR", "ENOTDIR", "EEXIST", "ENOTEMPTY"].includes(findCode(error));
}

/**
 * Moves a file to `path` below `root` and removes whatever is in the way there. Does nothing when `from` does not
 * exist, because an earlier attempt has moved it.
 */
export function moveInto(root: string, path: string, from: string): void {
  const to = join(root, path);
  try {
    rename(from, to);
  } catch (error) {
    if (findCode(error) === "ENOENT" && !exists(from)) return;
    if (findCode(error) !== "ENOENT" && !isInTheWay(error)) throw error;
    if (isInTheWay(error)) clearWay(root, path);
    makeFolder(root, path);
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
  return findCode(error) === "EXDEV";
}

/** Removes a folder that has the path of the file, and files that have the paths of its parent folders. */
function clearWay(root: string, path: string): void {
  const file = join(root, path);
  if (isFolder(file)) rmSync(file, { recursive: true });
  for (let folder = dirname(path); folder !== "."; folder = dirname(folder)) {
    if (!isFolder(join(root, folder)) && exists(join(root, folder))) rmSync(join(root, folder));
  }
}

/** Milliseconds after which a long loop gives other work a turn: the process may be a server that also builds. */
const MAX_TURN = 10;

let turnStart = performance.now();

/** To be called in each step of a long loop. Resolves at once, unless other work has waited for `MAX_TURN`. */
export async function yieldToEventLoop(): Promise<void> {
  if (performance.now() - turnStart < MAX_TURN) return;
  await setImmediate();
  turnStart = performance.now();
}
