/**
 * Opens the embedded database: PGlite in a thread of its own, which leaves the event loop free and can be terminated
 * when a query takes too long (PGlite itself cannot cancel one).
 */
import { mkdirSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { type Lock, LockedError, takeLock } from "../../lock.ts";
import type { Database, DatabaseOptions } from "../database.ts";
import { type Guest, joinDatabase } from "./guest.ts";
import { outlive } from "./heir.ts";
import { shareDatabase } from "./host.ts";
import { lockOf } from "./keeper.ts";
import { openOwn } from "./own.ts";

/**
 * Opens the database of a folder, or joins the process that has it open and shares it. With `share`, the result
 * outlives that process: it then opens the database itself or joins another. Throws LockedError when the database stays
 * in use.
 */
export async function openEmbedded(options: DatabaseOptions): Promise<Database> {
  const opened = await openOrJoin(options);
  return options.share && "hasEnded" in opened ? outlive(opened, () => openOrJoin(options)) : opened;
}

/**
 * Number of attempts to take the lock or to join, and the milliseconds between them. Most processes that hold the lock
 * soon release it or share the database, so commands that run at the same time take turns.
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
  // Sharing is optional: if no socket can be created, this process uses the database alone.
  const host = await shareDatabase(database, options.dataDir).catch(() => null);
  const close = async () => {
    await host?.close();
    await database.close();
  };
  return { ...database, close };
}
