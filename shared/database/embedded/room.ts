/** Checks the free disk space of the embedded database: without enough, PGlite hangs instead of failing. */
import { statfsSync } from "node:fs";
import { dirname } from "node:path";
import { EmbeddedFault } from "../fault.ts";

const MEGABYTE = 1_024 * 1_024;
/** Bytes that opening the database writes at most, and that a statement may write before the next check. */
const ROOM = 32 * MEGABYTE;
/** Bytes of a file of the write-ahead log: if the next one does not fit on the disk, PGlite retries forever. */
const LOG_FILE = 16 * MEGABYTE;

export function isFull(folder: string): boolean {
  return roomAt(dirname(folder)) < ROOM;
}

/** Whether a running statement may never end, because the disk has no space for the next file of the log. */
export function isStuck(folder: string): boolean {
  return roomAt(dirname(folder)) < LOG_FILE;
}

/** Throws an EmbeddedFault when there is too little space to begin a write. */
export function needRoom(folder: string): void {
  if (isFull(folder)) throw diskFull(folder);
}

export function diskFull(folder: string): EmbeddedFault {
  return new EmbeddedFault(
    `The embedded database in ${folder} cannot be written to, for its disk is full. What was there before is intact; make room and run the command again.`,
  );
}

/** Bytes that this user may still write; infinite for a file system that reports no blocks and for a missing folder. */
function roomAt(folder: string): number {
  try {
    const { blocks, bavail, bsize } = statfsSync(folder);
    return blocks === 0 ? Number.POSITIVE_INFINITY : bavail * bsize;
  } catch {
    // Timers call this: an error there would end the process, also that of a server that can still answer from a tree.
    return Number.POSITIVE_INFINITY;
  }
}
