/**
 * Opens the embedded database: in a thread of this process, or through another process that has it open and shares it.
 * With `share`, the result outlives that process.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { makeFolders } from "../../files.ts";
import { type Lock, LockedError, takeLock } from "../../lock.ts";
import type { Query, Row } from "../../sql/query.ts";
import { type Database, type DatabaseOptions, keepListening } from "../database.ts";
import { DatabaseFault, notBegunFault, ServerEndedFault } from "../errors.ts";
import { type Order, runTransaction } from "./orders.ts";
import { joinDatabase, type Opened, shareDatabase } from "./share.ts";
import { findLockFile, openSupervisor, type Supervisor, type Thread } from "./thread.ts";

/** Throws LockedError when the database stays in use by a process that does not share it. */
export async function openEmbedded(options: DatabaseOptions): Promise<Database> {
  let current = await openOrJoin(options);
  let opening: Promise<void> | null = null;
  let closed = false;
  const stops: (() => Promise<void>)[] = [];

  /** If the process that had the database open has ended, joins the one that has it open by now, or opens it here. */
  async function use<T>(work: (database: Opened) => Promise<T>): Promise<T> {
    const used = current;
    try {
      return await work(used);
    } catch (error) {
      if (!options.share || closed || !(error instanceof ServerEndedFault) || error.hasBegun) throw error;
      opening ??= current === used ? reopen() : null;
      await opening;
      return work(current);
    }
  }

  async function reopen(): Promise<void> {
    try {
      current = await openOrJoin(options);
    } catch (error) {
      throw new DatabaseFault("unavailable", "no process shares the embedded database", error);
    } finally {
      opening = null;
    }
  }

  return {
    kind: "embedded",
    query: (query, signal) => use((database) => database.query(query, signal)),
    execute: (script) => use((database) => database.execute(script)),
    transaction: (access, run) => use((database) => database.transaction(access, run)),
    probe: () => use((database) => database.probe()),
    listen: async (onChange) => {
      const stop = await keepListening(() => use((database) => database.listen(onChange)), onChange);
      stops.push(stop);
      return stop;
    },
    renewConnections: () => {},
    connections: () => ({ open: 1, idle: 0 }),
    close: async () => {
      closed = true;
      await Promise.all(stops.map((stop) => stop()));
      await opening?.catch(() => {});
      await current.close();
    },
  };
}

/**
 * Number of attempts to take the lock or to join, and the milliseconds between them. Most processes that hold the lock
 * soon release it or share the database, so commands that run at the same time take turns.
 */
const MAX_ATTEMPTS = 50;
const RETRY_INTERVAL = 100;

async function openOrJoin(options: DatabaseOptions, attemptsLeft = MAX_ATTEMPTS): Promise<Opened> {
  makeFolders(options.dataDir);
  try {
    return await openHere(options, takeLock(findLockFile(options.dataDir)));
  } catch (error) {
    if (!(error instanceof LockedError)) throw error;
    const joined = await joinDatabase(options.dataDir);
    if (joined !== null) return joined;
    if (attemptsLeft === 1) throw error;
    await sleep(RETRY_INTERVAL);
    return openOrJoin(options, attemptsLeft - 1);
  }
}

/** `lock` is the lock of the folder, which this process must hold. */
async function openHere(options: DatabaseOptions, lock: Lock): Promise<Opened> {
  const database = openLocal(options, lock);
  if (!options.share) return database;
  // Sharing is optional: if no socket can be created, this process uses the database alone.
  const stopSharing = await shareDatabase(database, options.dataDir).catch(() => null);
  const close = async () => {
    await stopSharing?.();
    await database.close();
  };
  return { ...database, close };
}

/** Milliseconds that `close` waits for what is running. Ended in the middle, the database is left as after a crash. */
const CLOSE_TIMEOUT = 5_000;

/** Opens the database in a thread of this process, which runs one query or transaction after the other. */
function openLocal({ dataDir, queryTimeout }: DatabaseOptions, lock: Lock): Opened {
  const listeners = new Set<() => void>();
  const onChange = () => {
    for (const listener of listeners) listener();
  };
  // Listeners are notified, because a change may have been missed meanwhile.
  const onReplaced = (thread: Thread) => {
    if (listeners.size > 0) thread.run({ listen: true }).then(onChange, () => {});
  };
  const supervisor = openSupervisor(dataDir, lock, { onChange, onReplaced });
  const inTurn = openMutex();

  return {
    query: (query, signal) => inTurn(() => runInTime(supervisor, query, queryTimeout, signal), signal),
    execute: (script) =>
      inTurn(async () => {
        const thread = await supervisor.thread();
        supervisor.checkWritable();
        await thread.run({ script });
      }),
    transaction: (access, work) =>
      inTurn(async () => {
        const thread = await supervisor.thread();
        const check = access === "write" ? supervisor.checkWritable : supervisor.checkLock;
        const run = async (order: Order) => {
          check();
          return thread.run(order);
        };
        return runTransaction(run, access, work, () => thread.run({ rollback: true }).catch(() => {}));
      }),
    listen: (listener) =>
      inTurn(async () => {
        await (await supervisor.thread()).run({ listen: true });
        listeners.add(listener);
        let close = () => {};
        const ended = new Promise<void>((resolve) => {
          close = () => {
            listeners.delete(listener);
            resolve();
          };
        });
        return { ended, close };
      }),
    // Always available: a thread that has ended is replaced when one is needed.
    probe: async () => {},
    close: async () => {
      // A database that never opened has nothing to close.
      const done = inTurn(supervisor.closeDatabase).catch(() => {});
      await Promise.race([done, sleep(CLOSE_TIMEOUT, null, { ref: false })]);
      await supervisor.end();
    },
  };
}

type Mutex = <T>(run: () => Promise<T>, signal?: AbortSignal) => Promise<T>;

/**
 * PGlite has one session: runs tasks one after the other, in the order of the calls; a task that fails does not block
 * the next. A task whose signal aborts before it has begun rejects at once with a DatabaseFault `overloaded`, and never
 * runs.
 */
function openMutex(): Mutex {
  let last: Promise<unknown> = Promise.resolve();
  return (run, signal) => {
    if (signal?.aborted) return Promise.reject(notBegunFault());
    let giveUp = () => {};
    const waited = new Promise<never>((_, reject) => {
      giveUp = () => reject(notBegunFault());
    });
    waited.catch(() => {});
    signal?.addEventListener("abort", giveUp, { once: true });
    const mine = last.then(() => {
      signal?.removeEventListener("abort", giveUp);
      if (signal?.aborted) throw notBegunFault();
      return run();
    });
    last = mine.catch(() => {});
    return signal === undefined ? mine : Promise.race([mine, waited]);
  };
}

/** Milliseconds that an aborted query may go on: ending its thread would cost the next query about as much. */
const GRACE = 500;

/**
 * Runs a query within its time limit in milliseconds, if it has one, or for a short while after its signal has aborted.
 * PGlite cannot cancel a query, so the thread of a late one is terminated.
 */
async function runInTime(
  supervisor: Supervisor,
  query: Query,
  limit: number | null,
  signal: AbortSignal | undefined,
): Promise<Row[]> {
  const thread = await supervisor.thread();
  await thread.ready;
  if (signal?.aborted) throw notBegunFault();
  if (query.writes) supervisor.checkWritable();
  const late = new DatabaseFault("timeout", "the query took too long");
  const timers: NodeJS.Timeout[] = [];
  let endSoon = () => {};
  const passed = new Promise<never>((_, reject) => {
    const endIn = (milliseconds: number) => void timers.push(setTimeout(() => reject(late), milliseconds));
    if (limit !== null) endIn(limit);
    endSoon = () => endIn(GRACE);
  });
  signal?.addEventListener("abort", endSoon, { once: true });
  try {
    const rows = await Promise.race([thread.run({ query }), passed]);
    if (signal?.aborted)
      throw new DatabaseFault("timeout", "the query was cancelled because its result is no longer needed");
    return rows;
  } catch (error) {
    if (error === late) {
      await thread.end();
      await supervisor.thread();
    }
    throw error;
  } finally {
    for (const timer of timers) clearTimeout(timer);
    signal?.removeEventListener("abort", endSoon);
  }
}
