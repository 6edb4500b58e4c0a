/**
 * The file of a lock (lock.ts): creates it whole, reads it, renews it, and removes one that was left behind, so that
 * another process that does the same at that moment is never harmed.
 */
import { randomUUID } from "node:crypto";
import {
  closeSync,
  linkSync,
  lstatSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";

/** False when the lock file exists. Uses a hard link where possible: then the file never appears without content. */
export function createLockFile(path: string, ownText: string): boolean {
  const draft = temporaryPath(path);
  try {
    writeFileSync(draft, ownText);
    return link(draft, path, ownText);
  } catch (error) {
    throw withoutDraftName(path, draft, error as Error);
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Replaces the draft's random name in the error: callers that report a fault only once compare its message. */
function withoutDraftName(path: string, draft: string, error: Error): Error {
  return Object.assign(error, { path, message: error.message.replaceAll(draft, path) });
}

/** Error codes of file systems without hard links. */
const NO_LINKS = ["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"];

/** Gives the file `draft`, which contains `text`, the name `path` too. False when that exists. */
function link(draft: string, path: string, text: string): boolean {
  try {
    linkSync(draft, path);
    return true;
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") return false;
    if (!NO_LINKS.includes(code)) throw error;
    return createInPlace(path, text);
  }
}

function createInPlace(path: string, ownText: string): boolean {
  try {
    writeFileSync(path, ownText, { flag: "wx" });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

/**
 * Writes the same text again, which sets the modification time by the clock of the file system. Reads and writes through
 * one open file: if another process takes the lock in between, its file is another one and stays as it is.
 */
export function renewLockFile(path: string, ownText: string): void {
  try {
    const file = openSync(path, "r+");
    try {
      if (readFileSync(file, "utf8") === ownText) writeSync(file, ownText, 0);
    } finally {
      closeSync(file);
    }
  } catch {
    // The next renewal may succeed.
  }
}

/** Milliseconds since the last renewal; infinity when the lock file does not exist. */
export function timeSinceRenewal(path: string): number {
  const renewed = statSync(path, { throwIfNoEntry: false })?.mtimeMs;
  if (renewed === undefined) return Number.POSITIVE_INFINITY;
  try {
    return fileSystemTime(path) - renewed;
  } catch {
    // The clock of a read-only file system cannot be read, because that takes writing a file: the lock may be held.
    return 0;
  }
}

/** Milliseconds since 1970 by the clock of the file system, which may be on another machine. */
function fileSystemTime(path: string): number {
  const file = temporaryPath(path);
  writeFileSync(file, "");
  const { mtimeMs } = statSync(file);
  rmSync(file);
  return mtimeMs;
}

/** A unique name beside `path`. Not by pid: processes in different containers can have the same one. */
function temporaryPath(path: string): string {
  return `${path}.${randomUUID()}`;
}

/** Removes a dead holder's lock file. Puts it back when another process has taken the lock since `text` was read. */
export function removeLockFile(path: string, text: string | null): void {
  const movedPath = temporaryPath(path);
  try {
    renameSync(path, movedPath);
    const movedText = readText(movedPath);
    if (movedText !== null && movedText !== text) link(movedPath, path, movedText);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  rmSync(movedPath, { force: true });
}

export function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
}

/** Null when there is no lock file. Throws when it cannot be read, as that of another user: it may be held. */
export function readLockFile(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

export function readText(path: string): string | null {
  try {
    return readLockFile(path);
  } catch {
    return null;
  }
}
