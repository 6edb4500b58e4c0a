/**
 * A journal: a file of counts, in which each line is a sum of equal requests (journal-sum.ts). Once `append` has
 * resolved, whoever sends the journal will read what was appended: its owner, or another server that has taken it.
 */
import { constants, existsSync, writeSync } from "node:fs";
import { type FileHandle, open, readFile, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { setImmediate } from "node:timers/promises";
import * as z from "zod";
import { APP_KEY } from "../../shared/api/catalog.ts";
import { isDate } from "../../shared/api/value.ts";
import { makeFolder } from "./owner.ts";

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

// The lines of a journal, each a sum of equal requests, and the sums of all of them.

/** A counted request: app key, shape, status, and what it could have left out to be free (empty when nothing). */
export type CountedRequest = {
  readonly app: string;
  readonly shape: string;
  readonly status: number;
  readonly saving: string;
};
/** Number of equal requests on one day (UTC). */
export type Sum = CountedRequest & { readonly day: string; readonly count: number };

const LINES_PER_TURN = 50;

const LINE = z.object({
  app: z.string().regex(APP_KEY),
  day: z.string().refine(isDate),
  shape: z.string(),
  status: z.int32(),
  saving: z.string(),
  count: z.int().min(1),
});

/**
 * Reads the sums of a journal, and the number of lines that cannot be parsed. An incomplete last line is neither: its
 * request was never answered. The sums are sorted, so that two servers that add to the same rows cannot deadlock.
 */
export async function readJournal(path: string): Promise<{ readonly sums: readonly Sum[]; readonly broken: number }> {
  const lines = [...countEqual((await readFile(path, "utf8")).split("\n").slice(0, -1))];
  const totals = new Map<string, Sum>();
  let broken = 0;
  for (const [index, [line, times]] of lines.entries()) {
    const sum = readLine(line);
    if (sum === null) broken += times;
    else addTo(totals, sum, times);
    // Journals are read while requests are answered, and a long one must not hold those up.
    if (index % LINES_PER_TURN === 0) await setImmediate();
  }
  return { sums: [...totals].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, sum]) => sum), broken };
}

/** Most lines repeat others, so equal lines are counted and parsed only once. */
function countEqual(lines: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const line of lines) counts.set(line, (counts.get(line) ?? 0) + 1);
  return counts;
}

export function writeLine(sum: Sum): string {
  return `${JSON.stringify(sum)}\n`;
}

function readLine(text: string): Sum | null {
  try {
    return LINE.parse(JSON.parse(text));
  } catch {
    return null;
  }
}

function addTo(totals: Map<string, Sum>, { count, ...key }: Sum, times: number): void {
  const name = JSON.stringify([key.app, key.day, key.shape, key.status, key.saving]);
  totals.set(name, { ...key, count: count * times + (totals.get(name)?.count ?? 0) });
}
