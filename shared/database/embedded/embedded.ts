/**
 * Opens the embedded database: PGlite in a thread of its own, which leaves the event loop free and can be terminated
 * when a query takes too long (PGlite itself cannot cancel one).
 */
import { mkdirSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { type Lock, LockedError, takeLock } from "../../lock.ts";
import type { Database, DatabaseOptions } from "../database.ts";
import { withFailover } from "./failover.ts";
import { type Guest, joinDatabase } from "./guest.ts";
import { shareDatabase } from "./host.ts";
import { openLocal } from "./local.ts";
import { lockFileOf } from "./supervisor.ts";

/**
 * Opens the database of a folder, or joins the process that has it open and shares it. With `share`, the result
 * outlives that process: it then opens the database itself or joins another. Throws LockedError when the database stays
 * in use.
 */
export async function openEmbedded(options: DatabaseOptions): Promise<Database> {
  const opened = await openOrJoin(options);
  return options.share && "hasEnded" in opened ? withFailover(opened, () => openOrJoin(options)) : opened;
}

/**
 * Number of attempts to take the lock or to join, and the milliseconds between them. Most processes that hold the lock
 * soon release it or share the database, so commands that run at the same time take turns.
 */
const MAX_ATTEMPTS = 50;
const RETRY_INTERVAL = 100;

async function openOrJoin(options: DatabaseOptions, attemptsLeft = MAX_ATTEMPTS): Promise<Database | Guest> {
  mkdirSync(options.dataDir, { recursive: true });
  let lock: Lock;
  try {
    lock = takeLock(lockFileOf(options.dataDir));
  } catch (error) {
    if (!(error instanceof LockedError)) throw error;
    const joined = await joinDatabase(options.dataDir);
    if (joined !== null) return joined;
    if (attemptsLeft === 1) throw error;
    await sleep(RETRY_INTERVAL);
    return openOrJoin(options, attemptsLeft - 1);
  }
  const database = openLocal(options, lock);
  if (!options.share) return database;
  // Sharing is optional: if no socket can be created, this process uses the database alone.
  const host = await shareDatabase(database, options.dataDir).catch(() => null);
  const close = async () => {
    await host?.close();
    await database.close();
  };
  return { ...database, close };
}
