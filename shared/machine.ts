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
