/** Opens the embedded database in this process: a thread runs one query or transaction after the other. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Lock } from "../../lock.ts";
import type { Query, Row } from "../../sql/query.ts";
import type { Access, Database, DatabaseOptions, Session } from "../database.ts";
import { DatabaseFault, notBegunFault } from "../fault.ts";
import { openMutex } from "./mutex.ts";
import { openSupervisor, type Supervisor } from "./supervisor.ts";
import type { Order, Thread } from "./thread.ts";
import { openTimeLimit } from "./time-limit.ts";

/** Milliseconds that `close` waits for what is running. Ended in the middle, the database is left as after a crash. */
const CLOSE_TIMEOUT = 5_000;

/** `lock` is the lock of the folder, which this process must hold. */
export function openLocal({ dataDir, queryTimeout }: DatabaseOptions, lock: Lock): Database {
  const listeners = new Set<() => void>();
  const onChange = () => {
    for (const listener of listeners) listener();
  };
  // Listeners are notified, because a change may have been missed meanwhile.
  const onReplaced = (thread: Thread) => {
    if (listeners.size > 0) thread.run({ listen: true }).then(onChange, () => {});
  };
  const supervisor = openSupervisor(dataDir, lock, { onChange, onReplaced });
  // PGlite has one connection.
  const inTurn = openMutex();

  return {
    kind: "embedded",
    query: (query, signal) => inTurn(() => runInTime(supervisor, query, queryTimeout, signal), signal),
    execute: (script) =>
      inTurn(async () => {
        const running = await supervisor.thread();
        supervisor.checkWritable();
        await running.run({ script });
      }),
    transaction: (access, run) => inTurn(() => transaction(supervisor, access, run)),
    listen: (listener) =>
      inTurn(async () => {
        await (await supervisor.thread()).run({ listen: true });
        listeners.add(listener);
        return async () => void listeners.delete(listener);
      }),
    // Always available: a thread that has ended is replaced when one is needed.
    probe: async () => {},
    renewConnections: () => {},
    connections: () => ({ open: 1, idle: 0 }),
    close: async () => {
      // A database that never opened has nothing to close.
      const done = inTurn(supervisor.closeDatabase).catch(() => {});
      await Promise.race([done, sleep(CLOSE_TIMEOUT, null, { ref: false })]);
      await supervisor.end();
    },
  };
}

/** Runs a query within its time limit. PGlite cannot cancel a query, so the thread of a late one is terminated. */
async function runInTime(
  supervisor: Supervisor,
  query: Query,
  milliseconds: number | null,
  signal: AbortSignal | undefined,
): Promise<Row[]> {
  const running = await supervisor.thread();
  await running.ready;
  if (signal?.aborted) throw notBegunFault();
  if (query.writes) supervisor.checkWritable();
  const timeLimit = openTimeLimit(milliseconds, signal);
  try {
    const rows = await Promise.race([running.run({ query }), timeLimit.passed]);
    if (signal?.aborted)
      throw new DatabaseFault("timeout", "the query was cancelled because its result is no longer needed");
    return rows;
  } catch (error) {
    if (error === timeLimit.fault) {
      await running.end();
      await supervisor.thread();
    }
    throw error;
  } finally {
    timeLimit.clear();
  }
}

async function transaction<T>(
  supervisor: Supervisor,
  access: Access,
  run: (session: Session) => Promise<T>,
): Promise<T> {
  const thread = await supervisor.thread();
  const check = access === "write" ? supervisor.checkWritable : supervisor.checkLock;
  const statement = async (order: Order) => {
    check();
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
