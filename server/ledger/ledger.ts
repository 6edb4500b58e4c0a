/**
 * The ledger of counted requests. A count is in a journal on disk before its answer leaves; journals reach the database
 * as batches whose ids make a repeat harmless.
 */
import { randomUUID } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import type { Database } from "../../shared/database/database.ts";
import { DatabaseFault } from "../../shared/database/fault.ts";
import { openAttempts } from "./attempt.ts";
import { forgetBatches } from "./batch.ts";
import { addTo, newGroup } from "./group.ts";
import { type Count, type Durability, type Journal, JournalLost, openJournal, type Sum, writeLine } from "./journal.ts";
import { openOutbox } from "./outbox.ts";
import { beOwner, nameOf, resign } from "./owner.ts";
import { repeat } from "./patrol.ts";

export type Ledger = {
  /** Resolves to true when the count is on disk, and to false when it cannot be: it is not counted then. */
  readonly count: (count: Count) => Promise<boolean>;
  readonly backlog: () => Backlog;
  /** Sends what is on disk to the database and ends. What cannot be sent stays for others, and for the next start. */
  readonly close: () => Promise<void>;
};

/** What the database does not know yet: how many requests, and for how many seconds the oldest of them has waited. */
export type Backlog = { readonly requests: number; readonly seconds: number };

export type LedgerOptions = {
  /** Where the journals are. Several servers may share it. */
  readonly folder: string;
  /** What tells the processes that this one can see from those of other machines and containers. */
  readonly machine: string;
  readonly now: () => Date;
  /** Is told once when the disk or the database begins to refuse counts. */
  readonly onError: (error: unknown) => void;
  /** What a count must survive before its answer leaves. */
  readonly durability?: Durability;
  /** Milliseconds between two looks for journals of dead owners. The same for all that share the folder. */
  readonly patrol?: number;
};

const SEND_AFTER = 1_000;
const RETRY_AFTER = 1_000;
const PATROL = 2_000;
/** A journal is read as a whole: it must not grow without end while the database is away. */
const FULL = 1_000_000;
/** After so many patrols batches are forgotten: every ten minutes. */
const FORGET_AFTER = 300;

/** The journal that is being written. `writing` is settled when nothing is being written to it. */
type Page = {
  readonly file: string;
  readonly journal: Journal;
  readonly since: number;
  requests: number;
  writing: Promise<void>;
  ended: boolean;
};

export async function openLedger(
  database: Database,
  { folder, machine, now, onError, durability = "process", patrol = PATROL }: LedgerOptions,
): Promise<Ledger> {
  await mkdir(folder, { recursive: true });
  const owner = beOwner(machine);
  let page: Page | null = null;
  // That the database is away is told by what sends.
  const attempt = openAttempts((error) => {
    if (!(error instanceof DatabaseFault)) onError(error);
  });
  const outbox = openOutbox(database, { folder, owner, onReturn, onError });
  await outbox.adopt();
  let group = newGroup();
  let writing: Promise<void> | null = null;
  let sending: Promise<void> | null = null;
  let timer: NodeJS.Timeout | null = null;
  let failing = false;
  let closed = false;

  /** Writes all that wait at once, as often as something waits: one write serves many requests. */
  async function writeGroups(): Promise<void> {
    while (group.sums.size > 0) {
      // What the event loop has in hand is counted first.
      await setImmediate();
      const current = group;
      group = newGroup();
      current.settle(await write([...current.sums.values()]));
      sendSoon(SEND_AFTER);
    }
    writing = null;
  }

  async function write(sums: readonly Sum[]): Promise<boolean> {
    let current: Page | null = null;
    try {
      current = await openPage();
      current.writing = current.journal.append(sums.map(writeLine).join(""));
      await current.writing;
    } catch (error) {
      if (error instanceof JournalLost && current !== null) await end(current);
      if (!failing) onError(error);
      failing = true;
      return false;
    }
    failing = false;
    for (const { count } of sums) current.requests += count;
    if (current.journal.bytes() > FULL) await end(current);
    return true;
  }

  /** Whoever took one may have read it, so what has been written to it cannot be written once more; what has not can. */
  async function openPage(): Promise<Page> {
    if (page?.journal.isTaken()) {
      onError(new JournalLost(page.journal.path));
      await end(page);
    }
    page ??= await newPage();
    return page;
  }

  async function newPage(): Promise<Page> {
    const file = nameOf(owner, randomUUID());
    const journal = await openJournal(join(folder, file), durability);
    return { file, journal, since: performance.now(), requests: 0, writing: Promise.resolve(), ended: false };
  }

  /** What is counted from now on goes into a new journal. */
  async function end(current: Page): Promise<void> {
    if (current.ended) return;
    current.ended = true;
    if (page === current) page = null;
    await current.writing.catch(() => {});
    await current.journal.close().catch(onError);
    outbox.put(current.file, current.requests, current.since);
  }

  async function onReturn(file: string): Promise<void> {
    if (page?.file === file) await end(page);
  }

  function sendSoon(milliseconds: number): void {
    timer ??= setTimeout(() => {
      timer = null;
      void send();
    }, milliseconds);
  }

  function send(): Promise<void> {
    sending ??= sendAll().finally(() => {
      sending = null;
    });
    return sending;
  }

  /** While the database is away one journal is written on, instead of a new one each time. */
  async function sendAll(): Promise<void> {
    let sent = await outbox.send();
    if (sent && page !== null) {
      await end(page);
      sent = await outbox.send();
    }
    if (!sent) sendSoon(RETRY_AFTER);
    // What was counted meanwhile may have come to its time, and found that something was being sent.
    else if (page !== null) sendSoon(SEND_AFTER);
  }

  /** Shows that we live, and looks who does not. */
  async function keepWatch(turn: number): Promise<void> {
    // While the database is away, this is all that a power failure leaves.
    if (page !== null) await attempt("sync", page.journal.sync);
    // Where the page was taken from us, the next write finds out.
    await outbox.touch(now(), page?.file);
    await attempt("adopt", outbox.adopt);
    outbox.retry();
    if (outbox.waiting().length > 0) sendSoon(0);
    if (turn % FORGET_AFTER === 0) await attempt("forget", () => forgetBatches(database));
  }

  const endPatrol = repeat(patrol, keepWatch, onError);
  if (outbox.waiting().length > 0) sendSoon(0);
  return {
    count: async (count) => {
      // Its request was cut at the end: nobody gets the answer.
      if (closed) return false;
      const done = addTo(group, count, now().toISOString().slice(0, 10));
      writing ??= writeGroups();
      return done;
    },
    backlog: () => {
      const waiting = [...outbox.waiting(), ...(page === null ? [] : [page])];
      const time = performance.now();
      return {
        requests: waiting.reduce((sum, { requests }) => sum + requests, 0),
        seconds: (time - Math.min(...waiting.map(({ since }) => since), time)) / 1_000,
      };
    },
    close: async () => {
      closed = true;
      await endPatrol();
      await writing;
      await sending;
      if (page !== null) await end(page);
      await send();
      if (timer !== null) clearTimeout(timer);
      resign(owner);
    },
  };
}
