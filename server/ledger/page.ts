/**
 * Manages the page, the journal that is being written. It is opened for the first count, and ended when it is full,
 * lost or due to be sent.
 */
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { type Durability, type Journal, JournalLost, openJournal, type Sum, writeLine } from "./journal.ts";
import type { Outbox } from "./outbox.ts";
import { nameOf, type Owner } from "./owner.ts";

/** `since` is when the page was opened, by `performance.now()`. */
export type Page = { readonly file: string; readonly since: number; readonly requests: number };

export type Pages = {
  readonly current: () => Page | null;
  /** Resolves when all the sums are on disk; rejects when none is. */
  readonly write: (sums: readonly Sum[]) => Promise<void>;
  /** Resolves when what is written survives a power failure. */
  readonly sync: () => Promise<void>;
  /** Moves the current journal to the outbox; later counts go into a new one. */
  readonly end: () => Promise<void>;
};

export type PageOptions = {
  readonly folder: string;
  readonly owner: Owner;
  readonly durability: Durability;
  readonly put: Outbox["put"];
  readonly onError: (error: unknown) => void;
};

/**
 * Number of bytes after which a page is ended. A journal is read as a whole, so it must not grow without limit while
 * the database is unavailable.
 */
const FULL = 1_000_000;

/** `writing` settles when the last write has ended. */
type Open = {
  readonly file: string;
  readonly journal: Journal;
  readonly since: number;
  requests: number;
  writing: Promise<void>;
};

export function openPages({ folder, owner, durability, put, onError }: PageOptions): Pages {
  let page: Open | null = null;

  async function open(): Promise<Open> {
    const file = nameOf(owner, randomUUID());
    const journal = await openJournal(join(folder, file), durability);
    return { file, journal, since: performance.now(), requests: 0, writing: Promise.resolve() };
  }

  /**
   * Returns the page to write to. One that another server has taken is replaced: what was written to it may have been
   * read and is not written again; only what has not been written goes into the new page.
   */
  async function find(): Promise<Open> {
    if (page?.journal.isTaken()) {
      onError(new JournalLost(page.journal.path));
      await end(page);
    }
    page ??= await open();
    return page;
  }

  async function append(current: Open, sums: readonly Sum[]): Promise<void> {
    current.writing = current.journal.append(sums.map(writeLine).join(""));
    try {
      await current.writing;
    } catch (error) {
      if (error instanceof JournalLost) await end(current);
      throw error;
    }
    for (const { count } of sums) current.requests += count;
    if (current.journal.bytes() > FULL) await end(current);
  }

  async function end(current: Open): Promise<void> {
    // The writer and the sender may end the same page at the same moment.
    if (page !== current) return;
    page = null;
    await current.writing.catch(() => {});
    await current.journal.close().catch(onError);
    put(current.file, current.requests, current.since);
  }

  return {
    current: () => page,
    write: async (sums) => append(await find(), sums),
    sync: async () => page?.journal.sync(),
    end: async () => {
      if (page !== null) await end(page);
    },
  };
}
