/**
 * The embedded database: PGlite in a thread of its own, which leaves the event loop free and can be ended when a query
 * takes too long (PGlite itself cannot cancel one).
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Lock, LockedError, takeLock } from "../../lock.ts";
import type { Access, Database, DatabaseOptions, Query, Row, Session } from "../database.ts";
import { DatabaseFault, EmbeddedFault, notBegun } from "../fault.ts";
import { type Guest, joinDatabase } from "./guest.ts";
import { outlive } from "./heir.ts";
import { shareDatabase } from "./host.ts";
import { openMutex } from "./mutex.ts";
import { needRoom } from "./room.ts";
import { type Order, startThread, type Thread } from "./thread.ts";

/**
 * Opens the database of this folder, or joins the server that has it open and shares it. Who would share it goes on when that
 * server ends.
 */
export async function openEmbedded(options: DatabaseOptions): Promise<Database> {
  const opened = await openOrJoin(options);
  return options.share && "hasEnded" in opened ? outlive(opened, () => openOrJoin(options)) : opened;
}

/**
 * Most who have the folder are soon done with it, or share it in a moment: so often they are asked, so many milliseconds apart.
 * Commands of two terminals, or of a script that runs several at once, take their turns.
 */
const KNOCKS = 50;
const BETWEEN_KNOCKS = 100;

async function openOrJoin(options: DatabaseOptions, knocks = KNOCKS): Promise<Database | Guest> {
  mkdirSync(options.dataDir, { recursive: true });
  let lock: Lock;
  try {
    lock = takeLock(lockOf(options.dataDir));
  } catch (error) {
    if (!(error instanceof LockedError)) throw error;
    const joined = await joinDatabase(options.dataDir);
    if (joined !== null) return joined;
    if (knocks === 1) throw error;
    await sleep(BETWEEN_KNOCKS);
    return openOrJoin(options, knocks - 1);
  }
  const database = openOwn(options, lock);
  if (!options.share) return database;
  // Sharing is a convenience: where no socket can be made, the database is this process's alone.
  const host = await shareDatabase(database, options.dataDir).catch(() => null);
  const close = async () => {
    await host?.close();
    await database.close();
  };
  return { ...database, close };
}

function lockOf(dataDir: string): string {
  return join(dataDir, "database.lock");
}

function openOwn({ dataDir, queryTimeout }: DatabaseOptions, taken: Lock): Database {
  const listeners = new Set<() => void>();
  const heard = () => {
    for (const tell of listeners) tell();
  };
  const folder = join(dataDir, "database");
  let failure: { readonly fault: unknown; readonly at: number } | null = null;
  const start = () => {
    const thread = startThread(folder, heard);
    thread.ready.catch((fault: unknown) => {
      failure = { fault, at: performance.now() };
    });
    return thread;
  };
  let current = start();
  let lock = taken;
  let closed = false;
  // PGlite has one connection.
  const inTurn = openMutex();

  /** The thread; a new one where it has ended. Who listens is told, for something may have been missed. */
  async function thread(): Promise<Thread> {
    if (lock.isHeld() && !current.hasEnded()) return current;
    // Two may not have the folder open, not even for the moment in which one dies.
    await current.end();
    if (!closed && !lock.isHeld()) lock = takeAgain();
    if (closed) throw new DatabaseFault("unavailable", "the embedded database is closed");
    if (failure !== null && performance.now() - failure.at < BETWEEN_OPENINGS) throw failure.fault;
    current = start();
    if (listeners.size > 0) current.run({ listen: true }).then(heard, () => {});
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

  const mayGoOn = () => {
    if (lock.isHeld()) return;
    // It may write nothing more, not even that a transaction is rolled back.
    void current.end();
    throw lockLost(folder);
  };
  const mayWrite = () => {
    mayGoOn();
    needRoom(folder);
  };

  async function limited(query: Query, signal?: AbortSignal): Promise<Row[]> {
    const running = await thread();
    await running.ready;
    if (signal?.aborted) throw notBegun();
    if (query.writes) mayWrite();
    const limit = patience(queryTimeout, signal);
    try {
      const rows = await Promise.race([running.run({ query }), limit.passed]);
      if (signal?.aborted) throw new DatabaseFault("timeout", "nobody waited for the query any more");
      return rows;
    } catch (error) {
      if (error === limit.fault) {
        await running.end();
        await thread();
      }
      throw error;
    } finally {
      limit.clear();
    }
  }

  return {
    kind: "embedded",
    query: (query, signal) => inTurn(() => limited(query, signal), signal),
    execute: (script) =>
      inTurn(async () => {
        const running = await thread();
        mayWrite();
        await running.run({ script });
      }),
    transaction: (access, run) =>
      inTurn(async () => transaction(await thread(), access, access === "write" ? mayWrite : mayGoOn, run)),
    listen: (tell) =>
      inTurn(async () => {
        await (await thread()).run({ listen: true });
        listeners.add(tell);
        return async () => void listeners.delete(tell);
      }),
    // A thread that has ended is started anew when it is needed.
    probe: async () => {},
    renew: () => {},
    connections: () => ({ open: 1, idle: 0 }),
    close: async () => {
      // One that never opened has nothing to close.
      const done = inTurn(async () => lock.isHeld() && current.run({ close: true })).catch(() => {});
      await Promise.race([done, sleep(PATIENCE, null, { ref: false })]);
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

/** Milliseconds: an opening that fails takes a second of a processor, and all that is asked would try it. */
const BETWEEN_OPENINGS = 1_000;

/** How long what runs may keep a database from being closed: ended in the middle, it is as after a crash. */
const PATIENCE = 5_000;

/** `look` is called before each statement, and throws where it may not run. */
async function transaction<T>(
  thread: Thread,
  access: Access,
  look: () => void,
  run: (session: Session) => Promise<T>,
): Promise<T> {
  const statement = async (order: Order) => {
    look();
    return thread.run(order);
  };
  await statement({ begin: access });
  try {
    const result = await run({
      query: (query) => statement({ query }),
      execute: async (script) => void (await statement({ script })),
    });
    await statement({ end: "commit" });
    return result;
  } catch (error) {
    await thread.run({ end: "rollback" }).catch(() => {});
    throw error;
  }
}

/** How long a query that nobody wants may run on: to end its thread would cost the next query as much. */
const GRACE = 500;

type Patience = {
  readonly fault: DatabaseFault;
  /** Rejects with the fault. */
  readonly passed: Promise<never>;
  readonly clear: () => void;
};

/** Ends with the limit, or a while after the signal. */
function patience(milliseconds: number | null, signal: AbortSignal | undefined): Patience {
  const fault = new DatabaseFault("timeout", "the query took too long");
  const timers: NodeJS.Timeout[] = [];
  let onAbort = () => {};
  const passed = new Promise<never>((_, reject) => {
    const endIn = (time: number) => void timers.push(setTimeout(() => reject(fault), time));
    if (milliseconds !== null) endIn(milliseconds);
    onAbort = () => endIn(GRACE);
    signal?.addEventListener("abort", onAbort, { once: true });
  });
  const clear = () => {
    for (const timer of timers) clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
  };
  return { fault, passed, clear };
}
