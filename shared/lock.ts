/**
 * Locks a folder for one live process, by a file. A lock whose holder is dead can be taken over. The operating system
 * tells which processes of this machine are alive; a holder on another machine or in another container counts as alive
 * as long as it renews its lock.
 */
import { randomUUID } from "node:crypto";
import {
  closeSync,
  linkSync,
  lstatSync,
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

  constructor(path: string, holder: string) {
    super(`${path} is held by ${holder}`);
    this.name = "LockedError";
    this.path = path;
    this.holder = holder;
  }
}

/** This process was suspended for so long that it counted as dead: its lock is gone, or another process has it. */
export class LockLostError extends Error {
  readonly path: string;

  constructor(path: string) {
    super(`${path} was taken over by another process while this one was suspended`);
    this.name = "LockLostError";
    this.path = path;
  }
}

export type Lock = {
  /** Reads the lock file, which is cheap. Ask before every action that only the holder may take. */
  readonly isHeld: () => boolean;
  /** Throws LockLostError when the lock is no longer held. */
  readonly check: () => void;
  readonly release: () => void;
};

/** `machine` is null for a process of this machine and container. */
type Holder = { readonly pid: number; readonly machine: string | null };

/** Milliseconds between renewals, and milliseconds without one after which a holder elsewhere counts as dead. */
const RENEWAL = 2_000;
const EXPIRY = 10_000;

/** Paths of the locks that this process holds. Any other lock with its pid was left by an earlier process. */
const heldPaths = new Set<string>();

/**
 * Takes the lock. Throws LockedError when a live process holds it, this one included. `onDead` is called after the lock
 * file of a dead process was removed.
 */
export function takeLock(path: string, onDead: () => void = () => {}): Lock {
  mkdirSync(dirname(path), { recursive: true });
  const ownText = `${process.pid} ${machineId()}\n`;
  for (;;) {
    if (createFile(path, ownText)) return hold(path, ownText);
    const text = readLock(path);
    // Its holder has released it since. A symbolic link to nothing stays, and nobody holds it.
    if (text === null && !isLink(path)) continue;
    const holder = liveHolder(path, text);
    if (holder !== null) throw new LockedError(path, holder);
    removeAbandoned(path, text);
    onDead();
  }
}

/** False when the lock file exists. Uses a hard link where possible: then the file never appears without content. */
function createFile(path: string, ownText: string): boolean {
  const draft = temporaryPath(path);
  try {
    writeFileSync(draft, ownText);
    return link(draft, path, ownText);
  } catch (error) {
    throw withoutDraftName(path, draft, error as Error);
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Replaces the draft's random name in the error: callers that report a fault only once compare its message. */
function withoutDraftName(path: string, draft: string, error: Error): Error {
  return Object.assign(error, { path, message: error.message.replaceAll(draft, path) });
}

/** Error codes of file systems without hard links. */
const NO_LINKS = ["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"];

/** Gives the file `draft`, which contains `text`, the name `path` too. False when that exists. */
function link(draft: string, path: string, text: string): boolean {
  try {
    linkSync(draft, path);
    return true;
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") return false;
    if (!NO_LINKS.includes(code)) throw error;
    return createInPlace(path, text);
  }
}

function createInPlace(path: string, ownText: string): boolean {
  try {
    writeFileSync(path, ownText, { flag: "wx" });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

/** Describes the live process that holds the lock; null when none does. */
export function holderOf(path: string): string | null {
  return liveHolder(path, readLock(path));
}

/** `text` is the content of the lock file; null when there is none. */
function liveHolder(path: string, text: string | null): string | null {
  // Without hard links, a lock file is empty for a moment.
  if (text === "") return isRenewed(path) ? "a process that has just taken it" : null;
  const holder = readHolder(text);
  return holder !== null && isHolderAlive(path, holder) ? nameOf(holder) : null;
}

function hold(path: string, ownText: string): Lock {
  heldPaths.add(path);
  const timer = setInterval(() => renew(path, ownText), RENEWAL).unref();
  const isHeld = () => isStillHeld(path, ownText);
  const check = () => {
    if (!isHeld()) throw new LockLostError(path);
  };
  const release = () => {
    clearInterval(timer);
    heldPaths.delete(path);
    if (readText(path) === ownText) rmSync(path, { force: true });
  };
  return { isHeld, check, release };
}

/** A lock file that cannot be read at the moment counts as still held. */
function isStillHeld(path: string, ownText: string): boolean {
  try {
    return readFileSync(path, "utf8") === ownText;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ENOENT";
  }
}

/**
 * Writes the same text again, which sets the modification time by the clock of the file system. Reads and writes through
 * one open file: if another process takes the lock in between, its file is another one and stays as it is.
 */
function renew(path: string, ownText: string): void {
  try {
    const file = openSync(path, "r+");
    try {
      if (readFileSync(file, "utf8") === ownText) writeSync(file, ownText, 0);
    } finally {
      closeSync(file);
    }
  } catch {
    // The next renewal may succeed.
  }
}

function isHolderAlive(path: string, { pid, machine }: Holder): boolean {
  if (machine !== null) return isRenewed(path);
  return pid === process.pid ? heldPaths.has(path) : isAlive(pid) && !hasReusedPid(path, pid);
}

/** Whether the process started after the lock's last renewal: then it only reuses the pid of the dead holder. */
function hasReusedPid(path: string, pid: number): boolean {
  const age = ageOf(pid);
  return age !== null && timeSinceRenewal(path) > age + EXPIRY;
}

function isRenewed(path: string): boolean {
  return timeSinceRenewal(path) < EXPIRY;
}

/** Milliseconds since the last renewal; infinity when the lock file does not exist. */
function timeSinceRenewal(path: string): number {
  const renewed = statSync(path, { throwIfNoEntry: false })?.mtimeMs;
  if (renewed === undefined) return Number.POSITIVE_INFINITY;
  try {
    return fileSystemTime(path) - renewed;
  } catch {
    // The clock of a read-only file system cannot be read, because that takes writing a file: the lock may be held.
    return 0;
  }
}

/** Milliseconds since 1970 by the clock of the file system, which may be on another machine. */
function fileSystemTime(path: string): number {
  const file = temporaryPath(path);
  writeFileSync(file, "");
  const { mtimeMs } = statSync(file);
  rmSync(file);
  return mtimeMs;
}

/** A unique name beside `path`. Not by pid: processes in different containers can have the same one. */
function temporaryPath(path: string): string {
  return `${path}.${randomUUID()}`;
}

/** Removes a dead holder's lock file. Puts it back when another process has taken the lock since `text` was read. */
function removeAbandoned(path: string, text: string | null): void {
  const movedPath = temporaryPath(path);
  try {
    renameSync(path, movedPath);
    const movedText = readText(movedPath);
    if (movedText !== null && movedText !== text) link(movedPath, path, movedText);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  rmSync(movedPath, { force: true });
}

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
}

/** Null when there is no lock file. Throws when it cannot be read, as that of another user: it may be held. */
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
  return machine === null ? `process ${pid}` : `process ${pid} on another machine or in another container`;
}
