/**
 * Gives each process a folder of its own in that of the ledger, which it holds by a lock. Journals in folders that nobody
 * holds are adopted: they are moved into the own folder, so that no count of a dead process is left behind.
 */
import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { access, open, readdir, rename, rm, rmdir } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { openAttempts, shareRunning } from "../../shared/async.ts";
import { makeFolders } from "../../shared/files.ts";
import { findHolder, type Lock, takeLock } from "../../shared/lock.ts";

export type OwnFolder = {
  /** The path of the journal with this id in the own folder, which is created when this process holds none. */
  readonly nameJournal: (id: string) => Promise<string>;
  /** Throws when it cannot read the ledger's folder; what keeps a single journal from being moved is reported once. */
  readonly adopt: () => Promise<void>;
  /** Lets others adopt the journals that are still there. */
  readonly leave: () => Promise<void>;
};

const LOCK = "lock";
/** With the id. Before each process had its own folder, the names of journals began with what told their owner. */
const JOURNAL = /(?:^|\.)([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.ndjson$/;

/** `onAdopted` is called with the new path of each journal that was adopted. */
export function openOwnFolder(
  ledger: string,
  onAdopted: (path: string) => void,
  onError: (error: unknown) => void,
): OwnFolder {
  const attempt = openAttempts(onError);
  let own: { readonly path: string; readonly lock: Lock } | null = null;

  /** A process that was suspended for so long that it seemed dead has lost its folder, and gets another one. */
  const claim = shareRunning(async () => {
    if (own?.lock.isHeld()) return own.path;
    own?.lock.release();
    own = null;
    const path = join(ledger, `${process.pid}-${randomUUID().slice(0, 8)}`);
    await makeFolder(ledger);
    own = { path, lock: takeLock(join(path, LOCK)) };
    return path;
  });

  const nameJournal = async (id: string) => join(await claim(), `${id}.ndjson`);

  async function adoptFrom(folder: string): Promise<void> {
    // Read before its lock: a process that has just made the folder, and locks it now, has nothing in it yet.
    const files = (await unlessGone(readdir(folder))) ?? [];
    if (findHolder(join(folder, LOCK)) !== null) return;
    for (const file of files) await attempt(`adopt ${file}`, () => adoptFile(folder, file));
  }

  async function adoptFile(folder: string, file: string): Promise<void> {
    const id = JOURNAL.exec(file)?.[1];
    if (id !== undefined) {
      const path = await nameJournal(id);
      // Renamed before it is read: a process that only seemed dead then writes no more to it. Of two that adopt the same
      // journal, one finds it gone.
      if ((await unlessGone(rename(join(folder, file), path))) !== null) onAdopted(path);
    } else if (file.startsWith(LOCK)) await rm(join(folder, file), { force: true });
  }

  return {
    nameJournal,
    adopt: async () => {
      const entries = await readdir(ledger, { withFileTypes: true });
      await adoptFrom(ledger);
      for (const entry of entries.filter((one) => one.isDirectory())) {
        const folder = join(ledger, entry.name);
        await attempt(`adopt from ${folder}`, () => adoptFrom(folder));
        await removeEmpty(folder);
      }
    },
    leave: async () => {
      own?.lock.release();
      if (own !== null) await removeEmpty(own.path);
    },
  };
}

/** Keeps a folder in which something is. */
async function removeEmpty(folder: string): Promise<void> {
  await rmdir(folder).catch(() => {});
}

// The folder of the ledger: creates it, checks it, and syncs its entries, without which a power failure loses files.

/** Error codes of systems that cannot sync a directory to disk (fsync(2)), or do not let this process do it. */
const SYNC_UNSUPPORTED: readonly unknown[] = ["EACCES", "EINVAL", "EISDIR", "ENOTSUP", "EPERM"];

export function findLedgerFolder(dataDir: string): string {
  return join(dataDir, "ledger");
}

/** Rejects with the system's error when the folder is not there or this process may not create files in it. */
export async function assertWritable(folder: string): Promise<void> {
  await access(folder, constants.W_OK | constants.X_OK);
}

/** Creates the folder and its parents, and writes the directory entries of those that were not there to disk. */
export async function makeFolder(folder: string): Promise<void> {
  const path = resolve(folder);
  // As long as the path that was given: that of a relative one would be shorter than all its parents.
  const first = makeFolders(path);
  if (first === undefined) return;
  for (let made = path; made.length >= first.length; made = dirname(made)) await syncFolder(dirname(made));
}

/** Writes a file or a folder to disk, opened with these flags. */
export async function syncPath(path: string, flags: "r" | "r+"): Promise<void> {
  const handle = await open(path, flags);
  await handle.sync().finally(() => handle.close());
}

export async function syncFolder(folder: string): Promise<void> {
  try {
    await syncPath(folder, "r");
  } catch (error) {
    if (!SYNC_UNSUPPORTED.includes((error as NodeJS.ErrnoException).code)) throw error;
  }
}

/** Resolves to null when the file no longer exists: another server may have adopted or sent it. */
export async function unlessGone<T>(effect: Promise<T>): Promise<T | null> {
  try {
    return await effect;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}
