/**
 * A lock on a folder, held by one live process. A dead holder's lock is no obstacle. Of this machine's processes it is known who
 * lives; those of another one, or of another container, live as long as they renew what they hold.
 */
import { randomUUID } from "node:crypto";
import {
  closeSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { ageOf, isAlive, machineId } from "./machine.ts";

export class LockedError extends Error {
  readonly path: string;
  readonly holder: string;

  constructor(path: string, holder: Holder) {
    super(`${path} is held by ${nameOf(holder)}`);
    this.name = "LockedError";
    this.path = path;
    this.holder = nameOf(holder);
  }
}

/** Who was stopped for so long that it counted as dead finds the lock gone, or somebody else's. */
export class LockLostError extends Error {
  readonly path: string;

  constructor(path: string) {
    super(`${path} was taken by another process, for this one was stopped for a while`);
    this.name = "LockLostError";
    this.path = path;
  }
}

export type Lock = {
  /** Looks at the disk, which costs little: to be asked before what only the holder may do. */
  readonly isHeld: () => boolean;
  /** Throws LockLostError where it is not held any more. */
  readonly check: () => void;
  readonly release: () => void;
};

/** `machine` is null where it is this one. */
type Holder = { readonly pid: number; readonly machine: string | null };

/** Milliseconds between two renewals, and without one after which a holder elsewhere counts as dead. */
const RENEWAL = 2_000;
const EXPIRY = 10_000;

/** What this process holds: a lock with our number that is not in here is left from a process that had it before us. */
const held = new Set<string>();

/**
 * Takes the lock. Throws LockedError when another live process holds it. `onDead` is called when a dead process held it.
 */
export function takeLock(path: string, onDead: () => void = () => {}): Lock {
  mkdirSync(dirname(path), { recursive: true });
  const own = `${process.pid} ${machineId()}\n`;
  for (;;) {
    if (make(path, own)) return hold(path, own);
    const text = readLock(path);
    const holder = readHolder(text);
    if (holder !== null && lives(path, holder)) throw new LockedError(path, holder);
    bury(path, text);
    onDead();
  }
}

/** False where there is a lock. It appears with the name of its holder in it, wherever a file can have two names. */
function make(path: string, own: string): boolean {
  const draft = besides(path);
  try {
    writeFileSync(draft, own);
    linkSync(draft, path);
    return true;
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") return false;
    if (!NO_LINKS.includes(code)) throw inTermsOf(path, draft, error as Error);
    return makeInPlace(path, own);
  } finally {
    rmSync(draft, { force: true });
  }
}

/** The name of a draft is another each time: who tells a fault once has to know it again. */
function inTermsOf(path: string, draft: string, error: Error): Error {
  return Object.assign(error, { path, message: error.message.replaceAll(draft, path) });
}

/** What file systems without hard links say. */
const NO_LINKS = ["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"];

function makeInPlace(path: string, own: string): boolean {
  try {
    writeFileSync(path, own, { flag: "wx" });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

/** The live process that holds the lock, in words; null where none does. */
export function holderOf(path: string): string | null {
  const holder = readHolder(readLock(path));
  return holder !== null && lives(path, holder) ? nameOf(holder) : null;
}

function hold(path: string, own: string): Lock {
  held.add(path);
  const timer = setInterval(() => renew(path, own), RENEWAL).unref();
  const isHeld = () => isStill(path, own);
  const check = () => {
    if (!isHeld()) throw new LockLostError(path);
  };
  const release = () => {
    clearInterval(timer);
    held.delete(path);
    if (readText(path) === own) rmSync(path, { force: true });
  };
  return { isHeld, check, release };
}

/** What cannot be read just now is not lost. */
function isStill(path: string, own: string): boolean {
  try {
    return readFileSync(path, "utf8") === own;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ENOENT";
  }
}

/** Writes what stands there already: the clock of the disk tells how long ago that was. */
function renew(path: string, own: string): void {
  if (readText(path) !== own) return;
  try {
    const file = openSync(path, "r+");
    try {
      writeSync(file, own);
    } finally {
      closeSync(file);
    }
  } catch {
    // A disk that takes nothing now may take the next.
  }
}

function lives(path: string, { pid, machine }: Holder): boolean {
  if (machine !== null) return isRenewed(path);
  return pid === process.pid ? held.has(path) : isAlive(pid) && !isOlder(path, pid);
}

/** A process that began after the lock was written last has the number of the dead one whose lock it is. */
function isOlder(path: string, pid: number): boolean {
  const age = ageOf(pid);
  if (age === null) return false;
  try {
    return silenceOf(path) > age + EXPIRY;
  } catch {
    // A disk that may only be read tells no time.
    return false;
  }
}

function isRenewed(path: string): boolean {
  return silenceOf(path) < EXPIRY;
}

/** Milliseconds since it was renewed. */
function silenceOf(path: string): number {
  const renewed = statSync(path, { throwIfNoEntry: false })?.mtimeMs;
  return renewed === undefined ? Number.POSITIVE_INFINITY : clockOf(path) - renewed;
}

/** The time of the disk, in milliseconds. */
function clockOf(path: string): number {
  const file = besides(path);
  writeFileSync(file, "");
  const { mtimeMs } = statSync(file);
  rmSync(file);
  return mtimeMs;
}

/** A name that nobody else has: process numbers are the same in many containers. */
function besides(path: string): string {
  return `${path}.${randomUUID()}`;
}

/** Removes a dead holder's lock, but not one that another process has taken since it was looked at. */
function bury(path: string, text: string | null): void {
  const grave = besides(path);
  try {
    renameSync(path, grave);
    if (readText(grave) !== text) linkSync(grave, path);
  } catch (error) {
    if (!["ENOENT", "EEXIST"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  }
  rmSync(grave, { force: true });
}

/** Null where there is none. One that may not be read, as that of another user, may be held: it is left alone. */
function readLock(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

function readText(path: string): string | null {
  try {
    return readLock(path);
  } catch {
    return null;
  }
}

function readHolder(text: string | null): Holder | null {
  const [, pid, machine = ""] = /^(\d+) ?(.*)/.exec(text ?? "") ?? [];
  if (pid === undefined) return null;
  return { pid: Number(pid), machine: machine === "" || machine === machineId() ? null : machine };
}

function nameOf({ pid, machine }: Holder): string {
  return machine === null ? `process ${pid}` : `process ${pid} of another machine or container`;
}
