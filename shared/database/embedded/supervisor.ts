/** Manages the thread of a folder: replaces one that has ended, never runs two, and none without holding the lock. */
import { join } from "node:path";
import { type Lock, LockedError, takeLock } from "../../lock.ts";
import { DatabaseFault, EmbeddedFault } from "../fault.ts";
import { checkSpace } from "./disk-space.ts";
import { startThread, type Thread } from "./thread.ts";

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

export type Listener = {
  /** Called when a thread reports a change of content. */
  readonly onChange: () => void;
  /** Called when a thread has replaced one that ended. */
  readonly onReplaced: (thread: Thread) => void;
};

/** Milliseconds between attempts to open: a failed one takes a second of CPU time, and every query would cause one. */
const REOPEN_INTERVAL = 1_000;

/** The lock file of a data folder: only the process that holds the lock may have the database open. */
export function lockFileOf(dataDir: string): string {
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
      return takeLock(lockFileOf(dataDir));
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
