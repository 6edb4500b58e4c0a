/** The room on the disk of the embedded database: where it needs some and there is none, PGlite neither goes on nor fails. */
import { statfsSync } from "node:fs";
import { dirname } from "node:path";
import { EmbeddedFault } from "../fault.ts";

const MEGABYTE = 1_024 * 1_024;
/** What opening writes at most, and what a statement may write before there is another look, in bytes. */
const ROOM = 32 * MEGABYTE;
/** A file of its log: where the next one does not fit, PGlite tries to make it for ever. */
const LOG_FILE = 16 * MEGABYTE;

export function isFull(folder: string): boolean {
  return roomAt(dirname(folder)) < ROOM;
}

/** Whether what runs there may never end. */
export function isStuck(folder: string): boolean {
  return roomAt(dirname(folder)) < LOG_FILE;
}

/** Throws where there is too little to begin a write. */
export function needRoom(folder: string): void {
  if (isFull(folder)) throw diskFull(folder);
}

export function diskFull(folder: string): EmbeddedFault {
  return new EmbeddedFault(
    `The embedded database in ${folder} cannot be written to, for its disk is full. What was there before is intact; make room and run the command again.`,
  );
}

/** Bytes that this user may still write. What has no blocks does not tell, nor does a folder that is gone. */
function roomAt(folder: string): number {
  try {
    const { blocks, bavail, bsize } = statfsSync(folder);
    return blocks === 0 ? Number.POSITIVE_INFINITY : bavail * bsize;
  } catch {
    // It is looked at from timers, where an error would end a server that has a tree to answer from.
    return Number.POSITIVE_INFINITY;
  }
}
