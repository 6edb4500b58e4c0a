/**
 * Journals: files of counts, in which each line is a sum of equal requests. Once a count is written, whoever sends the
 * journal will read it: its owner, or another server that has adopted it.
 */
import { randomUUID } from "node:crypto";
import { constants, existsSync, writeSync } from "node:fs";
import { open, readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { setImmediate } from "node:timers/promises";
import * as z from "zod";
import { APP_KEY } from "../../shared/api/catalog.ts";
import { isDate } from "../../shared/api/value.ts";
import { type OwnFolder, syncFolder } from "./owner.ts";

/**
 * A counted request: app key, shape, status, what it could have left out to be free (empty when nothing), and the type
 * and fields that it uses.
 */
export type CountedRequest = {
  readonly app: string;
  readonly shape: string;
  readonly status: number;
  readonly saving: string;
  readonly type?: string;
  readonly fields?: string;
};
/** Number of equal requests on one day (UTC). */
export type Sum = CountedRequest & { readonly day: string; readonly count: number };

/** What a written line must survive: `process` the end of the process, `power` also a power failure. */
export type Durability = "process" | "power";

// The journal that is being written. It is opened for the first count, and ended when it is full, lost or due to be sent.

export type JournalWriter = {
  readonly current: () => Pick<OpenedJournal, "since" | "requests"> | null;
  /** Resolves when all the sums are on disk; rejects when none is. */
  readonly write: (sums: readonly Sum[]) => Promise<void>;
  /** Resolves when what is written survives a power failure. */
  readonly sync: () => Promise<void>;
  /** Moves the current journal to the outbox; later counts go into a new one. */
  readonly end: () => Promise<void>;
};

type JournalWriterOptions = Pick<OwnFolder, "nameJournal"> & {
  readonly durability: Durability;
  /** Called with each journal that is ended. */
  readonly put: (path: string, requests: number, since: number) => void;
  readonly onError: (error: unknown) => void;
};

/**
 * Number of bytes after which the current journal is ended. A journal is read as a whole, so it must not grow without
 * limit while the database is unavailable.
 */
const MAX_BYTES = 1_000_000;

/** `since` is when it was opened, by `performance.now()`. `writing` settles when the last write has ended. */
type OpenedJournal = {
  readonly journal: Journal;
  readonly since: number;
  requests: number;
  writing: Promise<void>;
};

export function openJournalWriter({ nameJournal, durability, put, onError }: JournalWriterOptions): JournalWriter {
  let current: OpenedJournal | null = null;

  async function open(): Promise<OpenedJournal> {
    const journal = await openJournal(await nameJournal(randomUUID()), durability);
    return { journal, since: performance.now(), requests: 0, writing: Promise.resolve() };
  }

  /**
   * Returns the journal to write to. One that another server has adopted is replaced: what was written to it may have
   * been read and is not written again; only what has not been written goes into the new one.
   */
  async function findOrOpen(): Promise<OpenedJournal> {
    if (current?.journal.isTaken()) {
      onError(new JournalLost(current.journal.path));
      await end(current);
    }
    current ??= await open();
    return current;
  }

  async function append(opened: OpenedJournal, sums: readonly Sum[]): Promise<void> {
    opened.writing = opened.journal.append(sums.map((sum) => `${JSON.stringify(sum)}\n`).join(""));
    try {
      await opened.writing;
    } catch (error) {
      if (error instanceof JournalLost) await end(opened);
      throw error;
    }
    for (const { count } of sums) opened.requests += count;
    if (opened.journal.bytes() > MAX_BYTES) await end(opened);
  }

  async function end(opened: OpenedJournal): Promise<void> {
    // A write and a sending may end the same journal at the same moment.
    if (current !== opened) return;
    current = null;
    await opened.writing.catch(() => {});
    await opened.journal.close().catch(onError);
    put(opened.journal.path, opened.requests, opened.since);
  }

  return {
    current: () => current,
    write: async (sums) => append(await findOrOpen(), sums),
    sync: async () => current?.journal.sync(),
    end: async () => {
      if (current !== null) await end(current);
    },
  };
}

/**
 * Counts several requests by one write, for which all of them wait. What comes during a write forms the next group.
 * `write` must not reject.
 */
export function openGroups(write: (sums: readonly Sum[]) => Promise<boolean>) {
  let sums: Map<string, Sum> | null = null;
  let last = Promise.resolve(true);

  async function writeAfter(before: Promise<boolean>, group: Map<string, Sum>): Promise<boolean> {
    await before;
    // Lets the requests that are being processed in this turn of the event loop join the group.
    await setImmediate();
    sums = null;
    return write([...group.values()]);
  }

  return {
    /** Resolves to what `write` returned for the count's group. `day` is a date (UTC). */
    add: (count: CountedRequest, day: string): Promise<boolean> => {
      if (sums === null) {
        sums = new Map();
        last = writeAfter(last, sums);
      }
      addTo(sums, { ...count, day, count: 1 });
      return last;
    },
    /** Resolves when nothing is being written. */
    written: (): Promise<unknown> => last,
  };
}

// A single file.

export type Journal = {
  readonly path: string;
  readonly bytes: () => number;
  /** Whether another server has adopted the journal, by renaming it. Nothing may be appended to it then. */
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

const { O_WRONLY, O_CREAT, O_EXCL, O_APPEND, O_DSYNC = 0 } = constants;
const FLAGS = O_WRONLY | O_CREAT | O_EXCL | O_APPEND;

export async function openJournal(path: string, durability: Durability): Promise<Journal> {
  const handle = await open(path, durability === "power" ? FLAGS | O_DSYNC : FLAGS);
  let isNameSynced = false;
  let bytes = 0;

  /** A file survives a power failure only if its directory entry is on disk as well, and that of the own folder. */
  async function syncName(): Promise<void> {
    if (isNameSynced) return;
    for (const folder of [dirname(path), dirname(dirname(path))]) await syncFolder(folder);
    isNameSynced = true;
  }

  /**
   * Uses a thread only to wait for the disk: passing a few bytes to the system is faster than passing them to a thread.
   */
  async function writeLine(line: Buffer): Promise<number> {
    if (durability === "process") return writeSync(handle.fd, line);
    await syncName();
    return (await handle.write(line)).bytesWritten;
  }

  /** A refused request must not be counted, and nothing may follow a partial line. */
  const cutOff = () => handle.truncate(bytes);
  const isTaken = () => !existsSync(path);

  return {
    path,
    bytes: () => bytes,
    isTaken,
    append: async (text) => {
      const line = Buffer.from(text);
      try {
        if ((await writeLine(line)) < line.length)
          throw new Error(`${path} could not be written completely. Check whether the disk is full.`);
      } catch (error) {
        await cutOff().catch(() => {
          throw new JournalLost(path, error);
        });
        throw error;
      }
      // A server that adopts a journal renames it before reading it: what is written under the old name is read.
      if (isTaken()) {
        await cutOff().catch(() => {});
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

const LINES_PER_TURN = 50;

const LINE = z.object({
  app: z.string().regex(APP_KEY),
  day: z.string().refine(isDate),
  shape: z.string(),
  status: z.int32(),
  saving: z.string(),
  // Journals of earlier checkouts lack these.
  type: z.string().default(""),
  fields: z.string().default(""),
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
    else addTo(totals, { ...sum, count: sum.count * times });
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

function readLine(text: string): Sum | null {
  try {
    return LINE.parse(JSON.parse(text));
  } catch {
    return null;
  }
}

function addTo(sums: Map<string, Sum>, sum: Sum): void {
  const key = `${sum.app} ${sum.day} ${sum.shape} ${sum.status} ${sum.saving} ${sum.type} ${sum.fields}`;
  sums.set(key, { ...sum, count: sum.count + (sums.get(key)?.count ?? 0) });
}
