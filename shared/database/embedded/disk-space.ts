/** Checks the free disk space of the embedded database: without enough, PGlite hangs instead of failing. */
import { statfsSync } from "node:fs";
import { dirname } from "node:path";
import { EmbeddedFault } from "../fault.ts";

const MEGABYTE = 1_024 * 1_024;
/** Bytes that opening the database writes at most, and that a statement may write before the next check. */
const NEEDED_SPACE = 32 * MEGABYTE;
/** Bytes of a file of the write-ahead log: if the next one does not fit on the disk, PGlite retries forever. */
const LOG_FILE_SIZE = 16 * MEGABYTE;

export function isDiskFull(folder: string): boolean {
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
export function describeFullDisk(folder: string, deed: "opened" | "written to"): string {
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
