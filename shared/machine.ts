/** Identifies this machine and container, and tells whether a process here is alive and when it started. */
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

/** Equal for all processes that share pids: on Linux the kernel's boot id and PID namespace, else the host name. */
export function machineId(): string {
  try {
    return `${readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()} ${readlinkSync("/proc/self/ns/pid")}`;
  } catch {
    return hostname();
  }
}

/** Whether a process of this machine is alive, whichever user owns it. */
export function isAlive(pid: number): boolean {
  return isKnown(pid) && !isZombie(pid);
}

function isKnown(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/**
 * Whether a process has ended, with all its threads, and its parent has not asked how. It may stay so for good: the
 * first process of a container is often a program that asks for no child but its own.
 */
function isZombie(pid: number): boolean {
  try {
    const stat = statOf(pid);
    return stat[0] === "Z" && Number(stat[17]) <= 1;
  } catch {
    return false;
  }
}

/**
 * When a process of this machine started, in clock ticks since the machine booted: together with the pid it identifies
 * the process. Null when that is unknown, as on every system but Linux.
 */
export function startOf(pid: number): string | null {
  try {
    return statOf(pid)[19] ?? null;
  } catch {
    return null;
  }
}

/** What Linux tells of a process, from its state on (proc(5)). Throws on other systems. */
function statOf(pid: number): string[] {
  // The program name, in parentheses, may itself contain spaces and parentheses.
  return readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\)/s, "").trim().split(" ");
}
