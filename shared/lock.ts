/**
 * Locks a folder for one live process, by a file. A lock whose holder is dead can be taken over. The operating system
 * tells which processes of this machine are alive; a holder on another machine or in another container counts as alive
 * as long as it renews its lock.
 */
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import {
  createLockFile,
  isLink,
  readLockFile,
  readText,
  removeLockFile,
  renewLockFile,
  timeSinceRenewal,
} from "./lock-file.ts";
import { isAlive, machineId, startOf } from "./machine.ts";

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

/** `start` tells the holder from a later process with its pid. `machine` is null for this machine and container. */
type Holder = { readonly pid: number; readonly start: string | null; readonly machine: string | null };

/** Milliseconds between renewals, and milliseconds without one after which a holder elsewhere counts as dead. */
const RENEWAL = 2_000;
const EXPIRY = 10_000;

/** Stands in a lock file for a start that the system does not tell. */
const UNKNOWN = "-";

/** Paths of the locks that this process holds. Any other lock with its pid was left by an earlier process. */
const heldPaths = new Set<string>();

/**
 * Takes the lock. Throws LockedError when a live process holds it, this one included. `onDead` is called after the lock
 * file of a dead process was removed.
 */
export function takeLock(path: string, onDead: () => void = () => {}): Lock {
  mkdirSync(dirname(path), { recursive: true });
  const ownText = `${process.pid} ${startOf(process.pid) ?? UNKNOWN} ${machineId()}\n`;
  for (;;) {
    if (createLockFile(path, ownText)) return hold(path, ownText);
    const text = readLockFile(path);
    // Its holder has released it since. A symbolic link to nothing stays, and nobody holds it.
    if (text === null && !isLink(path)) continue;
    const holder = liveHolder(path, text);
    if (holder !== null) throw new LockedError(path, holder);
    removeLockFile(path, text);
    onDead();
  }
}

/** Describes the live process that holds the lock; null when none does. */
export function holderOf(path: string): string | null {
  return liveHolder(path, readLockFile(path));
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
  const timer = setInterval(() => renewLockFile(path, ownText), RENEWAL).unref();
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

function isHolderAlive(path: string, { pid, start, machine }: Holder): boolean {
  if (machine !== null) return isRenewed(path);
  return pid === process.pid ? heldPaths.has(path) : isAlive(pid) && !hasReusedPid(pid, start);
}

/** Whether the process with this pid is another one than that which started at `start`. */
function hasReusedPid(pid: number, start: string | null): boolean {
  const current = startOf(pid);
  return start !== null && current !== null && start !== current;
}

function isRenewed(path: string): boolean {
  return timeSinceRenewal(path) < EXPIRY;
}

/** A pid alone, as a script may write it, is that of a process here. */
function readHolder(text: string | null): Holder | null {
  const [, pid, start = UNKNOWN, machine = machineId()] = /^(\d+)(?: (\S+) (.+))?/.exec(text ?? "") ?? [];
  if (pid === undefined) return null;
  return {
    pid: Number(pid),
    start: start === UNKNOWN ? null : start,
    machine: machine === machineId() ? null : machine,
  };
}

function nameOf({ pid, machine }: Holder): string {
  return machine === null ? `process ${pid}` : `process ${pid} on another machine or in another container`;
}
