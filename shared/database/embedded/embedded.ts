/**
 * The embedded database: PGlite in a thread of its own, which leaves the event loop free and can be ended when a query
 * takes too long (PGlite itself cannot cancel one).
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
