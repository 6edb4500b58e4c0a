/** What Linux tells of any process in /proc. */
import { readFileSync } from "node:fs";

/** Of a process and all that it has started; null on another system. */
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

/** Linux counts in hundredths for every program, whatever the kernel's own clock. */
const TICKS = 100;

/** Seconds of user and system time. */
export function cpuOf(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS;
}

/** Bytes that it holds. */
export function memoryOf(pid: number): number {
  const found = /VmRSS:\s*(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  return found === null ? 0 : Number(found[1]) * 1_024;
}
