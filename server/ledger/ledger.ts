/**
 * The ledger of counted requests. A count is in a journal on disk before its answer is sent. Journals are sent to the
 * database as batches, whose ids make it harmless to send one again.
 */
import { openAttempts, repeat } from "../../shared/async.ts";
import type { Database } from "../../shared/database/database.ts";
import { DatabaseFault } from "../../shared/database/errors.ts";
import {
  type CountedRequest,
  type Durability,
  type JournalWriter,
  openGroups,
  openJournalWriter,
  type Sum,
} from "./journal.ts";
import { forgetBatches, type Outbox, openOutbox } from "./outbox.ts";
import { assertWritable, makeFolder, openOwnFolder } from "./owner.ts";

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
 * Counts that the database does not have yet: the number of requests, without those in journals of dead processes, and
 * the seconds since the oldest journal was opened or adopted.
 */
type Backlog = { readonly requests: number; readonly seconds: number };

export type LedgerOptions = {
  /** Folder of the journals. Several servers may share it. */
  readonly folder: string;
  readonly now: () => Date;
  /** Called once when the disk or the database begins to refuse counts. */
  readonly onError: (error: unknown) => void;
  /** What a count must survive before its answer leaves. */
  readonly durability?: Durability;
  /** Milliseconds between two times that what waits is written to disk and sent again. */
  readonly heartbeatInterval?: number;
};

const HEARTBEAT_INTERVAL = 2_000;
/** Number of heartbeats between two times that what others have left is cleared away: with the default, ten minutes. */
const CLEAR_EVERY = 300;
/** The first such heartbeat. At the start, the lock of a process that died in another container may still hold. */
const FIRST_CLEAR = 10;

/** Rejects with the system's error when the folder cannot be created or written. */
export async function openLedger(
  database: Database,
  { folder, now, onError, durability = "process", heartbeatInterval = HEARTBEAT_INTERVAL }: LedgerOptions,
): Promise<Ledger> {
  await makeFolder(folder);
  await assertWritable(folder);
  // The outbox reports that the database is unavailable.
  const attempt = openAttempts((error) => {
    if (!(error instanceof DatabaseFault)) onError(error);
  });
  const outbox = openOutbox(database, folder, onError);
  const own = openOwnFolder(folder, (path) => outbox.put(path, 0, performance.now()), onError);
  const writer = openJournalWriter({ nameJournal: own.nameJournal, durability, put: outbox.put, onError });
  const sender = openSender(outbox, writer);
  const groups = openGroups(write);
  const bound = openBound();
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
    sender.sendIn(SEND_AFTER);
    return !failing;
  }

  async function heartbeat(turn: number): Promise<void> {
    // While the database is unavailable, only synced counts survive a power failure.
    if (writer.current() !== null) await attempt("sync", writer.sync);
    await attempt("sync waiting", outbox.sync);
    if (turn % CLEAR_EVERY === FIRST_CLEAR) {
      // If others took the current journal and died, it comes back, and is then sent: nothing may be appended to it.
      await writer.end();
      await attempt("adopt", own.adopt);
      await attempt("forget", () => forgetBatches(database));
    }
    outbox.retry();
    if (outbox.waiting().length > 0) sender.sendIn(0);
  }

  await own.adopt();
  const stopHeartbeat = repeat(heartbeatInterval, heartbeat, onError);
  if (outbox.waiting().length > 0) sender.sendIn(0);
  return {
    count: async (count) => {
      // The connection of such a request was closed when the server stopped, so nobody gets its answer.
      const day = now().toISOString().slice(0, 10);
      return !closed && groups.add(bound(count, day), day);
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
      await own.leave();
    },
  };
}

/** The system's error for a full disk says neither which folder is affected nor what it means for clients. */
function describeRefusal(folder: string, error: unknown): Error {
  const reason = error instanceof Error ? error.message : String(error);
  const message = `${folder} cannot store counts, and counted requests are answered with 503 until it can: ${reason}`;
  return new Error(message, { cause: error });
}

// Schedules sending counts to the database: soon after they were counted, and repeatedly while it is unavailable.
// Only one sending runs at a time.

type Sender = {
  readonly sendIn: (milliseconds: number) => void;
  /** Ends the current journal and tries for the last time to send everything. */
  readonly close: () => Promise<void>;
};

const SEND_AFTER = 1_000;

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
    if (!sent) sendIn(SEND_AFTER);
    // The timer for counts made during this sending may have fired already, and then did nothing.
    else if (writer.current() !== null) sendIn(SEND_AFTER);
  }

  return {
    sendIn,
    close: async () => {
      await sending;
      await writer.end();
      await send();
      if (timer !== null) clearTimeout(timer);
    },
  };
}

/** Number of different types with their fields that are counted apart, for each app and day, in this process. */
const MOST_NAMES = 200;
/** Of requests that are beyond that. No type and no field is called so. */
const OTHERS = { type: "(other)", fields: "(other)" };

/** Bounds the rows of the usage: clients can ask for any combination of the fields of an app. */
function openBound() {
  let today = "";
  const seen = new Map<string, Set<string>>();

  return (count: CountedRequest, day: string): CountedRequest => {
    if (day !== today) seen.clear();
    today = day;
    const names = seen.get(count.app) ?? new Set();
    const name = `${count.type ?? ""} ${count.fields ?? ""}`;
    if (names.size >= MOST_NAMES && !names.has(name)) return { ...count, ...OTHERS };
    seen.set(count.app, names.add(name));
    return count;
  };
}
