/**
 * The thread of an embedded database: PGlite in it leaves the event loop free, and it can be terminated when a query
 * takes too long, which PGlite itself cannot cancel. A thread that has ended is replaced; there are never two for a
 * folder, and none without its lock.
 */
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { type Lock, LockedError, takeLock } from "../../lock.ts";
import type { Row } from "../../sql/query.ts";
import { DatabaseFault, EmbeddedFault } from "../errors.ts";
import { checkSpace, diskFullFault, explainOpenFailure, isMemoryFailure, mayBeStuck } from "./failure.ts";
import { type ChangeReport, type Order, openReplies, type PackedError, type Reply } from "./orders.ts";

/** The last message of a thread that cannot open the database: the reason, as a message to users. */
export type OpenFailure = { readonly unopened: string };

export type Thread = {
  readonly run: (order: Order) => Promise<Row[]>;
  /** Terminates the thread, which accepts no more orders from now on. Resolves when it has ended. */
  readonly end: () => Promise<unknown>;
  readonly hasEnded: () => boolean;
  /** Resolves when the database is open, which takes seconds the first time; rejects when it cannot be opened. */
  readonly ready: Promise<unknown>;
};

/** A thread inherits no module loader: when tests run the TypeScript sources directly, the compiled worker is used. */
const WORKER = new URL(
  import.meta.url.endsWith(".ts") ? "../../../dist/threads/embedded.js" : "../threads/embedded.js",
  import.meta.url,
);

/** Milliseconds between checks whether a running order is stuck on a full disk. */
const STUCK_CHECK_INTERVAL = 3_000;

/** Whether PGlite may be stuck for good after this error: it goes on after errors that would end PostgreSQL. */
function isBroken({ message, code }: PackedError): boolean {
  return code.startsWith("XX") || message.includes("pg_wal");
}

function startThread(folder: string, onChange: () => void): Thread {
  const worker = new Worker(WORKER, { workerData: folder });
  const replies = openReplies();

  worker.on("message", (message: Reply | ChangeReport | OpenFailure) => {
    if ("heard" in message) return onChange();
    if ("unopened" in message) return giveUp(new EmbeddedFault(message.unopened));
    if ("error" in message && isBroken(message.error)) giveUpIfStuck();
    replies.settle(message);
  });
  worker.on("error", (cause) => replies.end(errorFault(folder, cause)));
  worker.on("exit", () => replies.end(endedFault()));

  function giveUp(fault: DatabaseFault): void {
    replies.end(fault);
    void worker.terminate();
  }

  function giveUpIfStuck(): void {
    if (mayBeStuck(folder)) giveUp(diskFullFault(folder));
  }

  async function run(order: Order): Promise<Row[]> {
    worker.postMessage(order);
    const watch = setInterval(giveUpIfStuck, STUCK_CHECK_INTERVAL).unref();
    return replies.next().finally(() => clearInterval(watch));
  }

  const ready = run({ script: "" });
  ready.catch(() => {});
  const end = () => {
    replies.end(endedFault());
    return worker.terminate();
  };
  return { run, end, hasEnded: replies.hasEnded, ready };
}

/** The fault of a thread that has ended with an error, as when it could not reserve memory while its modules loaded. */
export function errorFault(folder: string, cause: unknown): DatabaseFault {
  const message = cause instanceof Error ? cause.message : "";
  return isMemoryFailure(message) ? new EmbeddedFault(explainOpenFailure(folder, message), cause) : endedFault(cause);
}

function endedFault(cause?: unknown): DatabaseFault {
  return new DatabaseFault("unavailable", "the embedded database has stopped", cause);
}

export type Supervisor = {
  /**
   * The running thread, or a new one if it has ended. Throws an EmbeddedFault when another process has taken the
   * folder, and for a second the fault of a thread that could not open the database.
   */
  readonly thread: () => Promise<Thread>;
  /** Throws an EmbeddedFault when another process has taken the lock since the thread started. */
  readonly checkLock: () => void;
  /** As checkLock; also throws an EmbeddedFault when the disk is too full for a write. */
  readonly checkWritable: () => void;
  /** Closes the database if this process still holds the lock. Rejects when the database could not be opened. */
  readonly closeDatabase: () => Promise<void>;
  /** Ends the thread and releases the lock. */
  readonly end: () => Promise<void>;
};

type Listener = {
  /** Called when a thread reports a change of content. */
  readonly onChange: () => void;
  /** Called when a thread has replaced one that ended. */
  readonly onReplaced: (thread: Thread) => void;
};

/** Milliseconds between attempts to open: a failed one takes a second of CPU time, and every query would cause one. */
const REOPEN_INTERVAL = 1_000;

/** The lock file of a data folder: only the process that holds the lock may have the database open. */
export function findLockFile(dataDir: string): string {
  return join(dataDir, "database.lock");
}

/** Starts the first thread. `taken` is the lock of the folder, which this process must hold. */
export function openSupervisor(dataDir: string, taken: Lock, { onChange, onReplaced }: Listener): Supervisor {
  const folder = join(dataDir, "database");
  let failure: { readonly fault: unknown; readonly at: number } | null = null;
  let current = start();
  let lock = taken;
  let closed = false;

  function start(): Thread {
    const thread = startThread(folder, onChange);
    thread.ready.catch((fault: unknown) => {
      failure = { fault, at: performance.now() };
    });
    return thread;
  }

  async function thread(): Promise<Thread> {
    if (lock.isHeld() && !current.hasEnded()) return current;
    // Two threads must never have the folder open, not even while one is terminating.
    await current.end();
    if (!closed && !lock.isHeld()) lock = retakeLock();
    if (closed) throw new DatabaseFault("unavailable", "the embedded database is closed");
    if (failure !== null && performance.now() - failure.at < REOPEN_INTERVAL) throw failure.fault;
    current = start();
    onReplaced(current);
    return current;
  }

  /** Takes the lock again after another process had it while this one was stopped. Throws if it is still taken. */
  function retakeLock(): Lock {
    lock.release();
    try {
      return takeLock(findLockFile(dataDir));
    } catch (error) {
      if (!(error instanceof LockedError)) throw error;
      throw lockLost(folder, error);
    }
  }

  function checkLock(): void {
    if (lock.isHeld()) return;
    // The thread must write nothing more, not even the rollback of a transaction.
    void current.end();
    throw lockLost(folder);
  }

  return {
    thread,
    checkLock,
    checkWritable: () => {
      checkLock();
      checkSpace(folder);
    },
    closeDatabase: async () => {
      if (lock.isHeld()) await current.run({ close: true });
    },
    end: async () => {
      closed = true;
      await current.end();
      lock.release();
    },
  };
}

function lockLost(folder: string, cause?: LockedError): EmbeddedFault {
  const taker = cause?.holder ?? "another process";
  return new EmbeddedFault(
    `The embedded database in ${folder} was taken over by ${taker} while the process that had it open was suspended. Uncommitted changes are lost. Run the command again.`,
    cause,
  );
}
