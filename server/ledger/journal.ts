/**
 * A journal: a file of counts, in which each line is a sum of equal requests (journal-sum.ts). Once `append` has
 * resolved, whoever sends the journal will read what was appended: its owner, or another server that has taken it.
 */
import { constants, existsSync, writeSync } from "node:fs";
import { type FileHandle, open, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { makeFolder } from "./folder.ts";

export type Journal = {
  readonly path: string;
  readonly bytes: () => number;
  /** Whether another server has taken the journal, by renaming it. Nothing may be appended to it then. */
  readonly isTaken: () => boolean;
  /** Throws JournalLost when nothing may be appended any more; after any other error the journal is unchanged. */
  readonly append: (text: string) => Promise<void>;
  /** Resolves when what was appended survives a power failure. */
  readonly sync: () => Promise<void>;
  readonly close: () => Promise<void>;
};

export class JournalLost extends Error {
  constructor(path: string, cause: unknown = new Error("another server has taken it over, or it was deleted")) {
    super(`${path} can no longer be used as a journal`, { cause });
    this.name = "JournalLost";
  }
}

/** What a written line must survive: `process` the end of the process, `power` also a power failure. */
export type Durability = "process" | "power";

const { O_WRONLY, O_CREAT, O_EXCL, O_APPEND, O_DSYNC = 0 } = constants;
const FLAGS = O_WRONLY | O_CREAT | O_EXCL | O_APPEND;

export async function openJournal(path: string, durability: Durability): Promise<Journal> {
  const syncNames = await makeFolder(dirname(path));
  const handle = await open(path, durability === "power" ? FLAGS | O_DSYNC : FLAGS);
  let isNameSynced = false;
  let bytes = 0;

  /** A file survives a power failure only if its directory entry is on disk as well. */
  async function syncName(): Promise<void> {
    if (!isNameSynced) await syncNames();
    isNameSynced = true;
  }

  /**
   * Uses a thread only to wait for the disk: passing a few bytes to the system is faster than passing them to a thread.
   */
  async function write(line: Buffer): Promise<void> {
    const written = durability === "power" ? (await handle.write(line)).bytesWritten : writeSync(handle.fd, line);
    if (written < line.length)
      throw new Error(`${path} could not be written completely. Check whether the disk is full.`);
  }

  /**
   * Cuts off what a failed append has written: a refused request must not be counted, and nothing may follow a partial
   * line. Resolves to false when that fails.
   */
  function undo(): Promise<boolean> {
    return handle.truncate(bytes).then(
      () => true,
      () => false,
    );
  }

  const isTaken = () => !existsSync(path);

  if (durability === "power") await syncName().catch((error: unknown) => giveUp(path, handle, error));
  return {
    path,
    bytes: () => bytes,
    isTaken,
    append: async (text) => {
      const line = Buffer.from(text);
      try {
        await write(line);
      } catch (error) {
        if (await undo()) throw error;
        throw new JournalLost(path, error);
      }
      // A server that takes a journal renames it before reading it: what is written under the old name is read.
      if (isTaken()) {
        await undo();
        throw new JournalLost(path);
      }
      bytes += line.length;
    },
    sync: async () => {
      await handle.datasync();
      await syncName();
    },
    close: () => handle.close(),
  };
}

/** Removes a journal to which nothing has been written, and throws the error. */
async function giveUp(path: string, handle: FileHandle, error: unknown): Promise<never> {
  await handle.close();
  await rm(path, { force: true });
  throw error;
}
