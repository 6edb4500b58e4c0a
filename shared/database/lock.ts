/** A lock on a folder, held by one live process. A dead holder's lock is no obstacle. */
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

export class LockedError extends Error {
  readonly holder: number;

  constructor(path: string, holder: number) {
    super(`${path} is held by process ${holder}`);
    this.name = "LockedError";
    this.holder = holder;
  }
}

/** What this process holds: a lock with our number that is not in here is left from a process that had it before us. */
const held = new Set<string>();

/**
 * Takes the lock and gives what releases it. Throws LockedError when another live process holds it. `onDead` is called
 * when a dead process held it.
 */
export function takeLock(path: string, onDead: () => void = () => {}): () => void {
  mkdirSync(dirname(path), { recursive: true });
  for (;;) {
    try {
      writeFileSync(path, `${process.pid}\n`, { flag: "wx" });
      held.add(path);
      return () => release(path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    const holder = readHolder(path);
    if (holder !== null && (holder === process.pid ? held.has(path) : isAlive(holder)))
      throw new LockedError(path, holder);
    bury(path, holder);
    onDead();
  }
}

/** The live process that holds the lock; null where none does. */
export function holderOf(path: string): number | null {
  const holder = readHolder(path);
  return holder !== null && isAlive(holder) ? holder : null;
}

function release(path: string): void {
  held.delete(path);
  rmSync(path, { force: true });
}

/** Removes a dead holder's lock, but not one that another process has taken since it was looked at. */
function bury(path: string, holder: number | null): void {
  const grave = `${path}.${process.pid}`;
  try {
    renameSync(path, grave);
    if (readHolder(grave) !== holder) linkSync(grave, path);
  } catch (error) {
    if (!["ENOENT", "EEXIST"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  }
  rmSync(grave, { force: true });
}

function readHolder(path: string): number | null {
  try {
    return Number.parseInt(readFileSync(path, "utf8"), 10) || null;
  } catch {
    return null;
  }
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
