/**
 * The ledger of counted requests. A count is in a journal on disk before its answer leaves; journals reach the database
 * as batches whose ids make a repeat harmless.
 */
import type { Database } from "../../shared/database/database.ts";
import { DatabaseFault } from "../../shared/database/fault.ts";
import { openAttempts } from "./attempt.ts";
import { forgetBatches } from "./batch.ts";
import { makeFolder } from "./folder.ts";
import { openGroups } from "./group.ts";
import type { Count, Durability, Sum } from "./journal.ts";
import { openOutbox } from "./outbox.ts";
import { beOwner, resign } from "./owner.ts";
import { openPages, type Pages } from "./page.ts";
import { repeat } from "./patrol.ts";
import { openSender } from "./sender.ts";

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

const PATROL = 2_000;
/** After so many patrols batches are forgotten: every ten minutes. */
const FORGET_AFTER = 300;

export async function openLedger(
  database: Database,
  { folder, machine, now, onError, durability = "process", patrol = PATROL }: LedgerOptions,
): Promise<Ledger> {
  const syncNames = await makeFolder(folder);
  await syncNames();
  const owner = beOwner(machine);
  // That the database is away is told by what sends.
  const attempt = openAttempts((error) => {
    if (!(error instanceof DatabaseFault)) onError(error);
  });
  const onReturn = async (file: string) => {
    if (pages.current()?.file === file) await pages.end();
  };
  const outbox = openOutbox(database, { folder, owner, onReturn, onError });
  const pages: Pages = openPages({ folder, owner, durability, put: outbox.put, onError });
  const sender = openSender(outbox, pages);
  const groups = openGroups(write);
  let failing = false;
  let closed = false;

  async function write(sums: readonly Sum[]): Promise<boolean> {
    try {
      await pages.write(sums);
      failing = false;
    } catch (error) {
      if (!failing) onError(describeRefusal(folder, error));
      failing = true;
    }
    sender.later();
    return !failing;
  }

  /** Shows that we live, and looks who does not. */
  async function keepWatch(turn: number): Promise<void> {
    // While the database is away, this is all that a power failure leaves.
    if (pages.current() !== null) await attempt("sync", pages.sync);
    // Where the page was taken from us, the next write finds out.
    await outbox.touch(now(), pages.current()?.file);
    await attempt("adopt", outbox.adopt);
    outbox.retry();
    if (outbox.waiting().length > 0) sender.now();
    if (turn % FORGET_AFTER === 0) await attempt("forget", () => forgetBatches(database));
  }

  await outbox.adopt();
  const endPatrol = repeat(patrol, keepWatch, onError);
  if (outbox.waiting().length > 0) sender.now();
  return {
    count: async (count) => {
      // Its request was cut at the end: nobody gets the answer.
      return !closed && groups.add(count, now().toISOString().slice(0, 10));
    },
    backlog: () => {
      const page = pages.current();
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
      await groups.written();
      await sender.close();
      resign(owner);
    },
  };
}

/** What a full disk says of itself names neither the disk nor what it means for those who ask. */
function describeRefusal(folder: string, error: unknown): Error {
  const reason = error instanceof Error ? error.message : String(error);
  return new Error(`${folder} takes no counts, and counted requests are 503 until it does: ${reason}`, {
    cause: error,
  });
}
