/** A lock on a folder, held by one live process. A dead holder's lock is no obstacle. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

export class LockedError extends Error {
  readonly holder: number;

  constructor(path: string, holder: number) {
    super(`${path} is held by process ${holder}`);
    this.name = "LockedError";
    this.holder = holder;
  }
}

/** Takes the lock and gives what releases it. Throws LockedError when another live process holds it. */
export function takeLock(path: string): () => void {
  mkdirSync(dirname(path), { recursive: true });
  for (;;) {
    try {
      writeFileSync(path, `${process.pid}\n`, { flag: "wx" });
      return () => rmSync(path, { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    const holder = readHolder(path);
    if (holder !== null && isAlive(holder)) throw new LockedError(path, holder);
    rmSync(path, { force: true });
  }
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
