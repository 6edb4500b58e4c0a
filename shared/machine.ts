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
