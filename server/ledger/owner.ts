/**
 * Tells who owns a journal. Servers, their workers and containers may share a folder of journals: no journal is taken
 * from an owner that shows it is alive, and none is left behind for good when its owner has died.
 */
import { hash, randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { access, mkdir, open, readdir, rename, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { openAttempts } from "../../shared/async.ts";
import { isAlive } from "../../shared/lock.ts";

/** Contents of a journal's file name. */
type JournalName = { readonly owner: Owner; readonly id: string };
export type Owner = { readonly machine: string; readonly pid: number; readonly ledger: string };

const NAME = /^([0-9a-f]{16})-(\d+)-([0-9a-f]{8})\.([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.ndjson$/;

/**
 * Ledger ids of the live owners in this process. An owner with the pid of this process that is not listed belongs to an
 * earlier process with the same pid, or has resigned.
 */
const liveOwners = new Set<string>();

/** Registers a new owner in this process. Only processes that can see each other have the same `machine`. */
export function registerOwner(machine: string): Owner {
  const ledger = randomUUID().slice(0, 8);
  liveOwners.add(ledger);
  return { machine: hash("sha256", machine).slice(0, 16), pid: process.pid, ledger };
}

/** Makes the journals that the owner still has free to be taken by others. */
export function unregisterOwner({ ledger }: Owner): void {
  liveOwners.delete(ledger);
}

export function nameJournal({ machine, pid, ledger }: Owner, id: string): string {
  return `${machine}-${pid}-${ledger}.${id}.ndjson`;
}

/** Null for a file that is no journal. */
export function readName(file: string): JournalName | null {
  const match = NAME.exec(file);
  if (match === null) return null;
  const [, machine = "", pid, ledger = "", id = ""] = match;
  return { owner: { machine, pid: Number(pid), ledger }, id };
}

/** Whether the owner is certainly dead. False for a process that this one cannot see, and for a pid that is in use. */
function isDead(owner: Owner, { machine }: Owner): boolean {
  if (owner.machine !== machine) return false;
  return owner.pid === process.pid ? !liveOwners.has(owner.ledger) : !isAlive(owner.pid);
}

/**
 * A journal that has the same modification time in this many checks in a row counts as abandoned: an owner that is
 * alive touches its journals several times in that period.
 */
const ABANDONED_AFTER = 15;

/**
 * Returns a function that takes the modification times at each check, by file name, and returns the files that have not
 * been touched for ABANDONED_AFTER checks. It counts checks because the clocks of two machines differ, and because the
 * time for which this process itself was stopped must not count.
 */
function watchForAbandoned(): (times: ReadonlyMap<string, number>) => string[] {
  let seen = new Map<string, { readonly time: number; readonly checks: number }>();
  return (times) => {
    const now = [...times].map(([file, time]) => {
      const before = seen.get(file);
      return [file, { time, checks: before?.time === time ? before.checks + 1 : 0 }] as const;
    });
    seen = new Map(now);
    return now.filter(([, { checks }]) => checks >= ABANDONED_AFTER).map(([file]) => file);
  };
}

// The folder of journals: creates it, checks it, and syncs its entries, without which a power failure loses files.

/** Error codes of systems that cannot sync a directory to disk (fsync(2)), or do not let this process do it. */
const SYNC_UNSUPPORTED: readonly unknown[] = ["EACCES", "EINVAL", "EISDIR", "ENOTSUP", "EPERM"];

export function findLedgerFolder(dataDir: string): string {
  return join(dataDir, "ledger");
}

/** Rejects with the system's error when the folder is not there or this process may not create files in it. */
export async function needWritable(folder: string): Promise<void> {
  await access(folder, constants.W_OK | constants.X_OK);
}

/**
 * Creates the folder and its parents. Returns a function that writes to disk the directory entries that may be new:
 * those in the folder, and those of the folders that were created.
 */
export async function makeFolder(folder: string): Promise<() => Promise<void>> {
  const first = await mkdir(folder, { recursive: true });
  return async () => {
    for (const one of foldersFrom(first === undefined ? folder : dirname(first), folder)) await syncFolder(one);
  };
}

/** The folders from `folder` up to `top`, the deepest first. */
function foldersFrom(top: string, folder: string): string[] {
  return folder === top || dirname(folder) === folder ? [folder] : [folder, ...foldersFrom(top, dirname(folder))];
}

/** Writes a file or a folder to disk, opened with these flags. */
export async function syncPath(path: string, flags: "r" | "r+"): Promise<void> {
  const handle = await open(path, flags);
  await handle.sync().finally(() => handle.close());
}

async function syncFolder(folder: string): Promise<void> {
  try {
    await syncPath(folder, "r");
  } catch (error) {
    if (!SYNC_UNSUPPORTED.includes((error as NodeJS.ErrnoException).code)) throw error;
  }
}

// Takes over the journals of dead owners, so that their counts are sent.

type AdoptionOptions = {
  readonly folder: string;
  readonly owner: Owner;
  /**
   * Called before a taken journal gets the name `file`. If that is the journal still being written, which another
   * server had taken before, resolves once nothing is appended to it any more.
   */
  readonly beforeTake: (file: string) => Promise<void>;
  /** Called with the new name of each journal that was taken. */
  readonly onTaken: (file: string) => void;
  /** Called with what keeps a journal from being taken, once for each. */
  readonly onError: (error: unknown) => void;
};

/** Throws when it cannot read the folder. */
type Adopt = () => Promise<void>;

export function openAdoption({ folder, owner, beforeTake, onTaken, onError }: AdoptionOptions): Adopt {
  const attempt = openAttempts(onError);
  const findAbandoned = watchForAbandoned();

  async function take(file: string, id: string): Promise<void> {
    const own = nameJournal(owner, id);
    // A journal that is appended to while it is being sent would be deleted with lines that were not sent.
    await beforeTake(own);
    // If two servers take the same journal, one of them finds it gone.
    if ((await unlessGone(rename(join(folder, file), join(folder, own)))) !== null) onTaken(own);
  }

  return async () => {
    const ids = new Map<string, string>();
    const dead = new Set<string>();
    const times = new Map<string, number>();
    for (const file of await readdir(folder)) {
      const name = readName(file);
      if (name === null || name.owner.ledger === owner.ledger) continue;
      ids.set(file, name.id);
      if (isDead(name.owner, owner)) dead.add(file);
    }
    const readTime = async (file: string) => {
      const found = await unlessGone(stat(join(folder, file)));
      if (found !== null) times.set(file, found.mtimeMs);
    };
    for (const file of ids.keys()) await attempt(`look at ${file}`, () => readTime(file));
    for (const file of new Set([...dead, ...findAbandoned(times)]))
      await attempt(`take ${file}`, () => take(file, ids.get(file) as string));
  };
}

// Journals can vanish at any moment, because another server that shares their folder takes or sends them.

/** Resolves to null when the file no longer exists. */
export async function unlessGone<T>(effect: Promise<T>): Promise<T | null> {
  try {
    return await effect;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}
