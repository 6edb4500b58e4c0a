/**
 * Where tests put their folders: in memory, if there is enough room. They create and delete databases and trees by the
 * thousand, and on a disk, files that are created soon after many deletions take several times as long.
 */
import { existsSync, readFileSync, statfsSync } from "node:fs";

const SHARED_MEMORY = "/dev/shm";
/** All tests together needed at most 420 MB. A container has 64 MB there by default. */
const ROOM = 2 * 1_024 ** 3;

/** Null without enough room, and where programs may not be run: tests run some from their folders. */
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
