/** Reads what Linux says about processes in /proc. */
import { readFileSync } from "node:fs";

/** The sum over a process and all its descendants; null on other systems. */
export function sumOf(pid: number, read: (pid: number) => number): number | null {
  if (process.platform !== "linux") return null;
  return family(pid).reduce((total, one) => total + read(one), 0);
}

/** nginx's worker is a child of the process that was started, and so are those of a server with several. */
function family(pid: number): number[] {
  return [pid, ...childrenOf(pid).flatMap(family)];
}

/** The oldest first. */
export function childrenOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  return text === "" ? [] : text.split(" ").map(Number);
}

/** Linux reports CPU time in hundredths of a second, whatever the kernel's own clock. */
const TICKS = 100;

/** Seconds of user and system time. */
export function cpuOf(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS;
}

/** Resident memory in bytes. */
export function memoryOf(pid: number): number {
  const found = /VmRSS:\s*(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  return found === null ? 0 : Number(found[1]) * 1_024;
}
