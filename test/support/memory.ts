/**
 * Where tests put their folders: in memory, where the system has room for them there. Databases and trees are made and
 * removed by the thousand, and what is made where much was just removed takes a disk several times as long.
 */
import { existsSync, readFileSync, statfsSync } from "node:fs";

const SHARED_MEMORY = "/dev/shm";
/** All tests together had 420 MB at most. A container has 64 MB there, unless it is told otherwise. */
const ROOM = 2 * 1_024 ** 3;

/** Null where there is not room enough, and where programs must not be run: tests have some of their own. */
export function folderInMemory(): string | null {
  if (!existsSync(SHARED_MEMORY) || !existsSync("/proc/mounts")) return null;
  const { bavail, bsize } = statfsSync(SHARED_MEMORY);
  const mount = readFileSync("/proc/mounts", "utf8")
    .split("\n")
    .map((line) => line.split(" "))
    .find(([, place]) => place === SHARED_MEMORY);
  const options = mount?.[3]?.split(",") ?? ["noexec"];
  return bavail * bsize >= ROOM && options.includes("rw") && !options.includes("noexec") ? SHARED_MEMORY : null;
}
