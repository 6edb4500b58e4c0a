/** Keeps the thread of a folder: a new one where it has ended, never two, and none while another process has the folder. */
import { join } from "node:path";
import { type Lock, LockedError, takeLock } from "../../lock.ts";
import { DatabaseFault, EmbeddedFault } from "../fault.ts";
import { needRoom } from "./room.ts";
import { startThread, type Thread } from "./thread.ts";

export type Keeper = {
  /** Throws an EmbeddedFault where another process has the folder by now. */
  readonly thread: () => Promise<Thread>;
  /** Throws where the folder was lost since. */
  readonly mayGoOn: () => void;
  /** The same, and where the disk has no room. */
  readonly mayWrite: () => void;
  /** Closes the database where the folder is still ours. Rejects where none could be opened. */
  readonly closeDatabase: () => Promise<void>;
  /** Ends the thread, and lets others have the folder. */
  readonly end: () => Promise<void>;
};

export type Listener = {
  /** A thread has heard of a change. */
  readonly heard: () => void;
  /** A thread has taken the place of one that ended. */
  readonly replaced: (thread: Thread) => void;
};

/** Milliseconds: an opening that fails takes a second of a processor, and all that is asked would try it. */
const BETWEEN_OPENINGS = 1_000;

/** What stands in the folder of the data of which only one process may have the database open. */
export function lockOf(dataDir: string): string {
  return join(dataDir, "database.lock");
}

/** `taken` is the lock of the folder. */
export function openKeeper(dataDir: string, taken: Lock, { heard, replaced }: Listener): Keeper {
  const folder = join(dataDir, "database");
  let failure: { readonly fault: unknown; readonly at: number } | null = null;
  let current = start();
  let lock = taken;
  let closed = false;

  function start(): Thread {
    const thread = startThread(folder, heard);
    thread.ready.catch((fault: unknown) => {
      failure = { fault, at: performance.now() };
    });
    return thread;
  }

  async function thread(): Promise<Thread> {
    if (lock.isHeld() && !current.hasEnded()) return current;
    // Two may not have the folder open, not even for the moment in which one dies.
    await current.end();
    if (!closed && !lock.isHeld()) lock = takeAgain();
    if (closed) throw new DatabaseFault("unavailable", "the embedded database is closed");
    if (failure !== null && performance.now() - failure.at < BETWEEN_OPENINGS) throw failure.fault;
    current = start();
    replaced(current);
    return current;
  }

  /** Another had the folder while this process was stopped: what the thread knew of it is no more. */
  function takeAgain(): Lock {
    lock.release();
    try {
      return takeLock(lockOf(dataDir));
    } catch (error) {
      if (!(error instanceof LockedError)) throw error;
      throw lockLost(folder, error);
    }
  }

  function mayGoOn(): void {
    if (lock.isHeld()) return;
    // It may write nothing more, not even that a transaction is rolled back.
    void current.end();
    throw lockLost(folder);
  }

  return {
    thread,
    mayGoOn,
    mayWrite: () => {
      mayGoOn();
      needRoom(folder);
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
    `The embedded database in ${folder} was taken by ${taker}, for the one that had it was stopped for a while. What was not committed is lost; run the command again.`,
    cause,
  );
}
