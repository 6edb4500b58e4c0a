/**
 * The embedded database: PGlite in a thread of its own, which leaves the event loop free and can be ended when a query
 * takes too long (PGlite itself cannot cancel one).
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import {
  type Access,
  BEGIN,
  type Database,
  type DatabaseOptions,
  type Listener,
  type Query,
  type Row,
  type Session,
} from "./database.ts";
import { DatabaseFault } from "./fault.ts";
import { joinDatabase } from "./guest.ts";
import { shareDatabase } from "./host.ts";
import { LockedError, takeLock } from "./lock.ts";
import { takeTurns } from "./turns.ts";

/** What the thread is told, and what it answers. */
export type Job = { readonly id: number } & Order;
export type Reply = { readonly id: number } & ({ readonly rows: Row[] } | { readonly error: SqlError });
/** Comes unasked. */
export type Heard = { readonly heard: true };
export type SqlError = { readonly message: string; readonly code: string };

type Order =
  | { readonly query: Query }
  | { readonly script: string }
  | { readonly listen: true }
  | { readonly close: true };
type Thread = {
  readonly run: (order: Order) => Promise<Row[]>;
  readonly end: () => Promise<unknown>;
  /** Resolves when the database is open, which takes seconds the first time. */
  readonly ready: Promise<unknown>;
};

/** Opens the database of this folder, or joins the server that has it open and shares it. */
export async function openEmbedded(options: DatabaseOptions): Promise<Database> {
  mkdirSync(options.dataDir, { recursive: true });
  let unlock: () => void;
  try {
    unlock = takeLock(join(options.dataDir, "database.lock"));
  } catch (error) {
    const joined = error instanceof LockedError ? await joinDatabase(options.dataDir) : null;
    if (joined === null) throw error;
    return joined;
  }
  const database = openOwn(options, unlock);
  if (!options.share) return database;
  // Sharing is a convenience: where no socket can be made, the database is this process's alone.
  const host = await shareDatabase(database, options.dataDir).catch(() => null);
  const close = async () => {
    await host?.close();
    await database.close();
  };
  return { ...database, close };
}

function openOwn(options: DatabaseOptions, unlock: () => void): Database {
  const folder = join(options.dataDir, "database");
  const listeners = new Set<Listener>();
  const heard = () => {
    for (const listener of listeners) listener.heard();
  };
  let thread = startThread(folder, heard);
  // PGlite has one connection.
  const inTurn = takeTurns();

  async function limited(order: Order): Promise<Row[]> {
    if (options.queryTimeout === null) return thread.run(order);
    await thread.ready;
    const limit = timeLimit(options.queryTimeout);
    try {
      return await Promise.race([thread.run(order), limit.passed]);
    } catch (error) {
      if (error instanceof DatabaseFault && error.reason === "timeout") {
        await thread.end();
        thread = startThread(folder, heard);
        if (listeners.size > 0) thread.run({ listen: true }).then(heard, () => {});
      }
      throw error;
    } finally {
      limit.clear();
    }
  }

  return {
    kind: "embedded",
    query: (query) => inTurn(() => limited({ query })),
    execute: (script) => inTurn(async () => void (await thread.run({ script }))),
    transaction: (access, run) => inTurn(() => transaction(thread, access, run)),
    listen: (listener) =>
      inTurn(async () => {
        await thread.run({ listen: true });
        listeners.add(listener);
        return async () => void listeners.delete(listener);
      }),
    close: () =>
      inTurn(async () => {
        // One that never opened has nothing to close.
        await thread.run({ close: true }).catch(() => {});
        await thread.end();
        unlock();
      }),
  };
}

async function transaction<T>(thread: Thread, access: Access, run: (session: Session) => Promise<T>): Promise<T> {
  await thread.run({ script: BEGIN[access] });
  try {
    const result = await run({
      query: (query) => thread.run({ query }),
      execute: async (script) => void (await thread.run({ script })),
    });
    await thread.run({ script: "COMMIT" });
    return result;
  } catch (error) {
    await thread.run({ script: "ROLLBACK" }).catch(() => {});
    throw error;
  }
}

function timeLimit(milliseconds: number): { readonly passed: Promise<never>; readonly clear: () => void } {
  let timer: NodeJS.Timeout;
  const passed = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new DatabaseFault("timeout", "the query took too long")), milliseconds);
  });
  return { passed, clear: () => clearTimeout(timer) };
}

/** A thread inherits no loader: when the sources run as they are, in tests, the compiled worker serves them. */
const WORKER = new URL(
  import.meta.url.endsWith(".ts") ? "../../dist/shared/database/embedded-worker.js" : "./embedded-worker.js",
  import.meta.url,
);

function startThread(folder: string, heard: () => void): Thread {
  const worker = new Worker(WORKER, { workerData: folder });
  const waiting = new Map<number, { resolve: (rows: Row[]) => void; reject: (error: unknown) => void }>();
  let last = 0;

  worker.on("message", (reply: Reply | Heard) => {
    if ("heard" in reply) return heard();
    const asked = waiting.get(reply.id);
    waiting.delete(reply.id);
    if ("rows" in reply) asked?.resolve(reply.rows);
    else asked?.reject(Object.assign(new Error(reply.error.message), { code: reply.error.code }));
  });
  const failAll = (error: unknown) => {
    for (const asked of waiting.values())
      asked.reject(new DatabaseFault("unavailable", "the embedded database ended", error));
    waiting.clear();
  };
  worker.on("error", failAll);
  worker.on("exit", failAll);

  const run = (order: Order) =>
    new Promise<Row[]>((resolve, reject) => {
      const id = ++last;
      waiting.set(id, { resolve, reject });
      worker.postMessage({ id, ...order } satisfies Job);
    });
  const ready = run({ script: "" });
  ready.catch(() => {});
  return { run, end: () => worker.terminate(), ready };
}
