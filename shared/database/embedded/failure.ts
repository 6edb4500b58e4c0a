/**
 * Why the embedded database cannot be opened or written to, and what to do, so that nobody removes one that is intact.
 * Without enough disk space PGlite hangs instead of failing, so that is checked beforehand.
 */
import { accessSync, constants, statfsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { EmbeddedFault } from "../errors.ts";

/** Returns one or two sentences for users. `message` is the message of PGlite, which is the same for several causes. */
export function explainOpenFailure(folder: string, message: string): string {
  const subject = `The embedded database in ${folder}`;
  if (isFile(folder))
    return `${subject} cannot be opened: that is a file, not a folder. Remove it, or choose another folder (--data-dir).`;
  if (isForbidden(folder)) {
    return `${subject} cannot be used by this user. Give this user access to the folder, or choose another folder (--data-dir).`;
  }
  if (isDiskFull(folder) || message.startsWith("ENOSPC")) return describeFullDisk(folder, "opened");
  if (isMemoryFailure(message)) {
    return `${subject} needs more memory than this process may use (${message}). Raise the limit (ulimit -v), or use PostgreSQL (--database-url).`;
  }
  return `${subject} cannot be opened (${message}). Replace the folder with a backup of it, or remove it and import again.`;
}

/** PGlite's message for too little memory depends on the version of V8. */
export function isMemoryFailure(message: string): boolean {
  return /WebAssembly|out of memory|allocation failed/i.test(message);
}

function isFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function isForbidden(folder: string): boolean {
  try {
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
    return false;
  } catch (error) {
    return ["EACCES", "EPERM", "EROFS"].includes((error as NodeJS.ErrnoException).code ?? "");
  }
}

const MEGABYTE = 1_024 * 1_024;
/** Bytes that opening the database writes at most, and that a statement may write before the next check. */
const NEEDED_SPACE = 32 * MEGABYTE;
/** Bytes of a file of the write-ahead log: if the next one does not fit on the disk, PGlite retries forever. */
const LOG_FILE_SIZE = 16 * MEGABYTE;

function isDiskFull(folder: string): boolean {
  return freeSpaceAt(dirname(folder)) < NEEDED_SPACE;
}

/** Whether a running statement may never end, because the disk has no space for the next file of the log. */
export function mayBeStuck(folder: string): boolean {
  return freeSpaceAt(dirname(folder)) < LOG_FILE_SIZE;
}

/** Throws an EmbeddedFault when there is too little space to begin a write. */
export function checkSpace(folder: string): void {
  if (isDiskFull(folder)) throw diskFullFault(folder);
}

export function diskFullFault(folder: string): EmbeddedFault {
  return new EmbeddedFault(describeFullDisk(folder, "written to"));
}

/** `deed` is what the full disk prevents. */
function describeFullDisk(folder: string, deed: "opened" | "written to"): string {
  return `The embedded database in ${folder} cannot be ${deed} because its disk is full. The existing data is intact. Free some disk space, then run the command again.`;
}

/** Bytes that this user may still write; infinite for a file system that reports no blocks and for a missing folder. */
function freeSpaceAt(folder: string): number {
  try {
    const { blocks, bavail, bsize } = statfsSync(folder);
    return blocks === 0 ? Number.POSITIVE_INFINITY : bavail * bsize;
  } catch {
    // Timers call this: an error there would end the process, also that of a server that can still answer from a tree.
    return Number.POSITIVE_INFINITY;
  }
}
