/**
 * The ledger of counted requests. A count is in a journal on disk before its answer is sent. Journals are sent to the
 * database as batches, whose ids make it harmless to send one again.
 */
import { openAttempts, repeat } from "../../shared/async.ts";
import type { Database } from "../../shared/database/database.ts";
import { DatabaseFault } from "../../shared/database/errors.ts";
import type { CountedRequest, Durability, Sum } from "./journal.ts";
import { forgetBatches, type Outbox, openOutbox } from "./outbox.ts";
import { makeFolder, needWritable, openAdoption, registerOwner, unregisterOwner } from "./owner.ts";
import { type JournalWriter, openGroups, openJournalWriter } from "./writer.ts";

export type Ledger = {
  /** Resolves to true when the count is on disk, and to false when it cannot be written: it is not counted then. */
  readonly count: (count: CountedRequest) => Promise<boolean>;
  readonly backlog: () => Backlog;
  /**
   * Sends the journals to the database and closes the ledger. A journal that cannot be sent stays on disk for another
   * server or the next start.
   */
  readonly close: () => Promise<void>;
};

/**
 * Counts that the database does not have yet: the number of requests, without those in journals taken from dead owners,
 * and the seconds since the oldest journal was opened or taken.
 */
type Backlog = { readonly requests: number; readonly seconds: number };

export type LedgerOptions = {
  /** Folder of the journals. Several servers may share it. */
  readonly folder: string;
  /** Id that differs between machines and containers: only processes with the same id can see each other. */
  readonly machine: string;
  readonly now: () => Date;
  /** Called once when the disk or the database begins to refuse counts. */
  readonly onError: (error: unknown) => void;
  /** What a count must survive before its answer leaves. */
  readonly durability?: Durability;
  /** Milliseconds between two searches for journals of dead owners; the same for all servers that share the folder. */
  readonly heartbeatInterval?: number;
};

const HEARTBEAT_INTERVAL = 2_000;
/** Number of heartbeats between two deletions of old batch ids: with the default, ten minutes. */
const FORGET_AFTER = 300;

/** Rejects with the system's error when the folder cannot be created or written. */
export async function openLedger(
  database: Database,
  { folder, machine, now, onError, durability = "process", heartbeatInterval = HEARTBEAT_INTERVAL }: LedgerOptions,
): Promise<Ledger> {
  const syncNames = await makeFolder(folder);
  await needWritable(folder);
  await syncNames();
  const owner = registerOwner(machine);
  // The outbox reports that the database is unavailable.
  const attempt = openAttempts((error) => {
    if (!(error instanceof DatabaseFault)) onError(error);
  });
  const outbox = openOutbox(database, { folder, syncNames, onError });
  const writer = openJournalWriter({ folder, owner, durability, put: outbox.put, onError });
  const adopt = openAdoption({
    folder,
    owner,
    onError,
    beforeTake: async (file) => {
      if (writer.current()?.file === file) await writer.end();
    },
    onTaken: (file) => outbox.put(file, 0, performance.now()),
  });
  const sender = openSender(outbox, writer);
  const groups = openGroups(write);
  let failing = false;
  let closed = false;

  async function write(sums: readonly Sum[]): Promise<boolean> {
    try {
      await writer.write(sums);
      failing = false;
    } catch (error) {
      if (!failing) onError(describeRefusal(folder, error));
      failing = true;
    }
    sender.later();
    return !failing;
  }

  /** Shows other servers that this ledger is alive, and takes the journals of owners that are not. */
  async function heartbeat(turn: number): Promise<void> {
    // While the database is unavailable, only synced counts survive a power failure.
    if (writer.current() !== null) await attempt("sync", writer.sync);
    await attempt("sync waiting", outbox.sync);
    // If another server has taken the current journal, the next write notices.
    await outbox.touch(now(), writer.current()?.file);
    await attempt("adopt", adopt);
    outbox.retry();
    if (outbox.waiting().length > 0) sender.now();
    if (turn % FORGET_AFTER === 0) await attempt("forget", () => forgetBatches(database));
  }

  await adopt();
  const stopHeartbeat = repeat(heartbeatInterval, heartbeat, onError);
  if (outbox.waiting().length > 0) sender.now();
  return {
    count: async (count) => {
      // The connection of such a request was closed when the server stopped, so nobody gets its answer.
      return !closed && groups.add(count, now().toISOString().slice(0, 10));
    },
    backlog: () => {
      const current = writer.current();
      const waiting = [...outbox.waiting(), ...(current === null ? [] : [current])];
      const time = performance.now();
      return {
        requests: waiting.reduce((sum, { requests }) => sum + requests, 0),
        seconds: (time - Math.min(...waiting.map(({ since }) => since), time)) / 1_000,
      };
    },
    close: async () => {
      closed = true;
      await stopHeartbeat();
      await groups.written();
      await sender.close();
      unregisterOwner(owner);
    },
  };
}

/** The system's error for a full disk says neither which folder is affected nor what it means for clients. */
function describeRefusal(folder: string, error: unknown): Error {
  const reason = error instanceof Error ? error.message : String(error);
  return new Error(
    `${folder} cannot store counts, and counted requests are answered with 503 until it can: ${reason}`,
    {
      cause: error,
    },
  );
}

// Schedules sending counts to the database: soon after they were counted, and repeatedly while it is unavailable.
// Only one sending runs at a time.

type Sender = {
  /** Schedules a sending in a second. */
  readonly later: () => void;
  readonly now: () => void;
  /** Ends the current journal and tries for the last time to send everything. */
  readonly close: () => Promise<void>;
};

const SEND_AFTER = 1_000;
const RETRY_AFTER = 1_000;

function openSender(outbox: Outbox, writer: JournalWriter): Sender {
  let sending: Promise<void> | null = null;
  let timer: NodeJS.Timeout | null = null;

  function sendIn(milliseconds: number): void {
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

  /**
   * Ends the current journal only after the outbox was sent: while the database is unavailable, one journal grows
   * instead of a new one being opened for every attempt.
   */
  async function sendAll(): Promise<void> {
    let sent = await outbox.send();
    if (sent && writer.current() !== null) {
      await writer.end();
      sent = await outbox.send();
    }
    if (!sent) sendIn(RETRY_AFTER);
    // The timer for counts made during this sending may have fired already, and then did nothing.
    else if (writer.current() !== null) sendIn(SEND_AFTER);
  }

  return {
    later: () => sendIn(SEND_AFTER),
    now: () => sendIn(0),
    close: async () => {
      await sending;
      await writer.end();
      await send();
      if (timer !== null) clearTimeout(timer);
    },
  };
}
