/**
 * Locks a folder for one live process, by a file that names it. A holder that has died on this machine is no obstacle;
 * one on another machine, or in another container, counts as dead when it has not renewed its lock for ten seconds.
 */
import { randomUUID } from "node:crypto";
import * as fs from "node:fs";
import { hostname } from "node:os";
import { dirname } from "node:path";
import { makeFolders } from "./files.ts";

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

export type Lock = ReturnType<typeof hold>;
const RENEWAL_MS = 2_000;
const EXPIRY_MS = 10_000;

/**
 * Takes the lock. Throws LockedError when a live process holds it, this one included. `onDead` is called after the lock
 * file of a dead process was removed.
 */
export function takeLock(path: string, onDead: () => void = () => {}): Lock {
  makeFolders(dirname(path));
  const ownText = `${process.pid} ${readStart(process.pid) ?? "-"} ${machineId()}\n`;
  while (!create(path, ownText)) {
    const text = readLock(path);
    const holder = findHolder(path, text);
    if (holder !== null) throw new LockedError(path, holder);
    if (removeDead(path, text)) onDead();
  }
  return hold(path, ownText);
}

/** False when the lock file exists. Uses a hard link where possible: then the file never appears without content. */
function create(path: string, ownText: string): boolean {
  const draft = `${path}.${randomUUID()}`;
  try {
    fs.writeFileSync(draft, ownText);
    if (attempt(() => fs.linkSync(draft, path), false) !== false) return true;
    return attempt(() => fs.writeFileSync(path, ownText, { flag: "wx" }), false, "EEXIST") !== false;
  } catch (error) {
    // Without the random name: callers that report a fault only once compare its message.
    throw Object.assign(error as Error, { path, message: (error as Error).message.replaceAll(draft, path) });
  } finally {
    fs.rmSync(draft, { force: true });
  }
}

function hold(path: string, ownText: string) {
  const isOwn = () => readLock(path) === ownText;
  // Writing, unlike utimes, sets the time by the clock of the file system, which may be on another machine.
  const renew = () => isOwn() && fs.writeFileSync(path, ownText, { flag: "r+" });
  const timer = setInterval(() => attempt(renew, false), RENEWAL_MS).unref();
  /** Cheap: ask before every action that only the holder may take. A file that cannot be read now is still its own. */
  const isHeld = () => attempt(isOwn, true);
  const check = () => {
    if (!isHeld()) throw new LockLostError(path);
  };
  const release = () => {
    clearInterval(timer);
    if (attempt(isOwn, false)) fs.rmSync(path, { force: true });
  };
  return { isHeld, check, release };
}

/** Describes the live process that holds the lock; null when none does. `text` is the content of the lock file. */
export function findHolder(path: string, text = readLock(path)): string | null {
  if (text === "") return isRenewed(path) ? "a process that has just taken it" : null;
  // A pid alone, as a script may write it, is that of a process here.
  const [, pid, start = "-", machine = machineId()] = /^(\d+)(?: (\S+) (.+))?/.exec(text ?? "") ?? [];
  if (pid === undefined) return null;
  // Nor is it this process, which writes more than that: a container gives its first process the same pid each time.
  if (text?.trim() === String(process.pid)) return null;
  if (machine !== machineId())
    return isRenewed(path) ? `process ${pid} on another machine or in another container` : null;
  // A process that started at another time than the holder has only got its pid.
  const hasReusedPid = start !== "-" && start !== (readStart(Number(pid)) ?? start);
  return isAlive(Number(pid)) && !hasReusedPid ? `process ${pid}` : null;
}

/** Compares with a new file, because the clock of the file system may be that of another machine. */
function isRenewed(path: string): boolean {
  const fresh = `${path}.${randomUUID()}`;
  const age = attempt(() => {
    fs.writeFileSync(fresh, "");
    return fs.statSync(fresh).mtimeMs - fs.statSync(path).mtimeMs;
    // On a read-only file system nobody can tell: the lock may be held.
  }, 0);
  fs.rmSync(fresh, { force: true });
  return age < EXPIRY_MS;
}

/** Puts the file back when another process has taken the lock since `text` was read. */
function removeDead(path: string, text: string | null): boolean {
  const moved = `${path}.${randomUUID()}`;
  if (attempt(() => fs.renameSync(path, moved), false, "ENOENT") === false) return false;
  const isIt = attempt(() => readLock(moved) === text, false);
  if (isIt) fs.rmSync(moved, { force: true });
  else fs.renameSync(moved, path);
  return isIt;
}

/** Null when there is no lock file. Throws when it cannot be read, as that of another user: it may be held. */
const readLock = (path: string): string | null => attempt(() => fs.readFileSync(path, "utf8"), null, "ENOENT");

/** Equal for all processes that share pids: on Linux the kernel's boot id and PID namespace, else the host name. */
export function machineId(): string {
  const bootId = () => fs.readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  return attempt(() => `${bootId()} ${fs.readlinkSync("/proc/self/ns/pid")}`, hostname());
}

/** Whether a process of this machine is alive, whichever user owns it. */
export function isAlive(pid: number): boolean {
  const { 0: state, 17: threads } = readStat(pid);
  // A zombie has ended, with all its threads, and may stay for good: the first process of a container asks for no child.
  if (state === "Z" && Number(threads) <= 1) return false;
  return attempt(() => attempt(() => process.kill(pid, 0), true, "EPERM"), false);
}

/** When a process started, in clock ticks since the machine booted; null when unknown, as on every system but Linux. */
export const readStart = (pid: number): string | null => readStat(pid)[19] ?? null;

/** What Linux tells of a process, from its state on (proc(5)): its name before that may itself contain parentheses. */
const readStat = (pid: number): string[] =>
  attempt(() => fs.readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\)/s, "").trim().split(" "), []);

/** What `act` returns, or `otherwise` when it throws an error (with the code `only`, if one is given). */
function attempt<T, U>(act: () => T, otherwise: U, only?: string): T | U {
  try {
    return act();
  } catch (error) {
    if (only === undefined || (error as NodeJS.ErrnoException).code === only) return otherwise;
    throw error;
  }
}
