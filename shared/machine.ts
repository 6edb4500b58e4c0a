/** What tells the processes that this one can see from those of other machines, containers and times. */
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

/** On Linux the boot of the kernel and the space of process numbers; elsewhere the host's name must do. */
export function machineId(): string {
  try {
    return `${readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()} ${readlinkSync("/proc/self/ns/pid")}`;
  } catch {
    return hostname();
  }
}

/** Whether a process of this machine lives, whoever owns it. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** Ticks of /proc/<pid>/stat in a second: Linux tells programs of no other number. */
const TICKS = 100;

/**
 * Milliseconds since a process of this machine began; null where that is not told, as anywhere but on Linux. Reckoned from our own age:
 * how long the machine runs, some containers tell of themselves.
 */
export function ageOf(pid: number): number | null {
  try {
    const age = process.uptime() + (startOf(process.pid) - startOf(pid)) / TICKS;
    return Number.isFinite(age) ? age * 1_000 : null;
  } catch {
    return null;
  }
}

/** When a process began, in ticks. */
function startOf(pid: number): number {
  // The name of a program, in parentheses, may hold anything.
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\)/s, "").trim().split(" ");
  return Number(stat[19]);
}
