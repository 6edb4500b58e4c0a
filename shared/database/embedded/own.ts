/** Opens the embedded database in this process: a thread runs one query or transaction after the other. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Lock } from "../../lock.ts";
import type { Access, Database, DatabaseOptions, Query, Row, Session } from "../database.ts";
import { DatabaseFault, notBegunFault } from "../fault.ts";
import { type Keeper, openKeeper } from "./keeper.ts";
import { openMutex } from "./mutex.ts";
import { openPatience } from "./patience.ts";
import type { Order, Thread } from "./thread.ts";

/** Milliseconds that `close` waits for what is running. Ended in the middle, the database is left as after a crash. */
const PATIENCE = 5_000;

/** `lock` is the lock of the folder, which this process must hold. */
export function openOwn({ dataDir, queryTimeout }: DatabaseOptions, lock: Lock): Database {
  const listeners = new Set<() => void>();
  const heard = () => {
    for (const tell of listeners) tell();
  };
  // Listeners are notified, because a change may have been missed meanwhile.
  const replaced = (thread: Thread) => {
    if (listeners.size > 0) thread.run({ listen: true }).then(heard, () => {});
  };
  const keeper = openKeeper(dataDir, lock, { heard, replaced });
  // PGlite has one connection.
  const inTurn = openMutex();

  return {
    kind: "embedded",
    query: (query, signal) => inTurn(() => runInTime(keeper, query, queryTimeout, signal), signal),
    execute: (script) =>
      inTurn(async () => {
        const running = await keeper.thread();
        keeper.mayWrite();
        await running.run({ script });
      }),
    transaction: (access, run) => inTurn(() => transaction(keeper, access, run)),
    listen: (tell) =>
      inTurn(async () => {
        await (await keeper.thread()).run({ listen: true });
        listeners.add(tell);
        return async () => void listeners.delete(tell);
      }),
    // Always available: a thread that has ended is replaced when one is needed.
    probe: async () => {},
    renewConnections: () => {},
    connections: () => ({ open: 1, idle: 0 }),
    close: async () => {
      // A database that never opened has nothing to close.
      const done = inTurn(keeper.closeDatabase).catch(() => {});
      await Promise.race([done, sleep(PATIENCE, null, { ref: false })]);
      await keeper.end();
    },
  };
}

/** Runs a query within its time limit. PGlite cannot cancel a query, so the thread of a late one is terminated. */
async function runInTime(
  keeper: Keeper,
  query: Query,
  milliseconds: number | null,
  signal: AbortSignal | undefined,
): Promise<Row[]> {
  const running = await keeper.thread();
  await running.ready;
  if (signal?.aborted) throw notBegunFault();
  if (query.writes) keeper.mayWrite();
  const patience = openPatience(milliseconds, signal);
  try {
    const rows = await Promise.race([running.run({ query }), patience.passed]);
    if (signal?.aborted) throw new DatabaseFault("timeout", "nobody waited for the query any more");
    return rows;
  } catch (error) {
    if (error === patience.fault) {
      await running.end();
      await keeper.thread();
    }
    throw error;
  } finally {
    patience.clear();
  }
}

async function transaction<T>(keeper: Keeper, access: Access, run: (session: Session) => Promise<T>): Promise<T> {
  const thread = await keeper.thread();
  const look = access === "write" ? keeper.mayWrite : keeper.mayGoOn;
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
