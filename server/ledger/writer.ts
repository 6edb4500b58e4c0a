/**
 * Manages the current journal, which is being written. It is opened for the first count, and ended when it is full,
 * lost or due to be sent.
 */
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import {
  type CountedRequest,
  type Durability,
  type Journal,
  JournalLost,
  openJournal,
  type Sum,
  writeLine,
} from "./journal.ts";
import type { Outbox } from "./outbox.ts";
import { nameJournal, type Owner } from "./owner.ts";

/** `since` is when the journal was opened, by `performance.now()`. */
type CurrentJournal = { readonly file: string; readonly since: number; readonly requests: number };

export type JournalWriter = {
  readonly current: () => CurrentJournal | null;
  /** Resolves when all the sums are on disk; rejects when none is. */
  readonly write: (sums: readonly Sum[]) => Promise<void>;
  /** Resolves when what is written survives a power failure. */
  readonly sync: () => Promise<void>;
  /** Moves the current journal to the outbox; later counts go into a new one. */
  readonly end: () => Promise<void>;
};

type JournalWriterOptions = {
  readonly folder: string;
  readonly owner: Owner;
  readonly durability: Durability;
  readonly put: Outbox["put"];
  readonly onError: (error: unknown) => void;
};

/**
 * Number of bytes after which the current journal is ended. A journal is read as a whole, so it must not grow without
 * limit while the database is unavailable.
 */
const MAX_BYTES = 1_000_000;

/** `writing` settles when the last write has ended. */
type OpenedJournal = {
  readonly file: string;
  readonly journal: Journal;
  readonly since: number;
  requests: number;
  writing: Promise<void>;
};

export function openJournalWriter({ folder, owner, durability, put, onError }: JournalWriterOptions): JournalWriter {
  let current: OpenedJournal | null = null;

  async function open(): Promise<OpenedJournal> {
    const file = nameJournal(owner, randomUUID());
    const journal = await openJournal(join(folder, file), durability);
    return { file, journal, since: performance.now(), requests: 0, writing: Promise.resolve() };
  }

  /**
   * Returns the journal to write to. One that another server has taken is replaced: what was written to it may have
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
    opened.writing = opened.journal.append(sums.map(writeLine).join(""));
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
    // The writer and the sender may end the same journal at the same moment.
    if (current !== opened) return;
    current = null;
    await opened.writing.catch(() => {});
    await opened.journal.close().catch(onError);
    put(opened.file, opened.requests, opened.since);
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

// Counts several requests by one write, for which all of them wait. What comes during a write forms the next group.

type Groups = {
  /** Resolves to what `write` returned for the count's group. `day` is a date (UTC). */
  readonly add: (count: CountedRequest, day: string) => Promise<boolean>;
  /** Resolves when nothing is being written. */
  readonly written: () => Promise<void>;
};

type MutableSum = Omit<Sum, "count"> & { count: number };

/** `settle` resolves `done` for all requests of the group. */
type Group = {
  readonly sums: Map<string, MutableSum>;
  readonly done: Promise<boolean>;
  readonly settle: (counted: boolean) => void;
};

export function openGroups(write: (sums: readonly Sum[]) => Promise<boolean>): Groups {
  let group = newGroup();
  let writing: Promise<void> | null = null;

  /** Writes all counts that wait in one go, and repeats that until none wait. */
  async function writeAll(): Promise<void> {
    while (group.sums.size > 0) {
      // Lets the requests that are being processed in this turn of the event loop join the group.
      await setImmediate();
      const current = group;
      group = newGroup();
      current.settle(await write([...current.sums.values()]));
    }
    writing = null;
  }

  return {
    add: (count, day) => {
      const done = addTo(group, count, day);
      writing ??= writeAll();
      return done;
    },
    written: async () => void (await writing),
  };
}

function newGroup(): Group {
  let settle: (counted: boolean) => void = () => {};
  const done = new Promise<boolean>((resolve) => {
    settle = resolve;
  });
  return { sums: new Map(), done, settle };
}

function addTo({ sums, done }: Group, count: CountedRequest, day: string): Promise<boolean> {
  const key = `${count.app} ${day} ${count.shape} ${count.status} ${count.saving}`;
  const sum = sums.get(key);
  if (sum === undefined) sums.set(key, { ...count, day, count: 1 });
  else sum.count++;
  return done;
}
