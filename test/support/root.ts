/** What Linux lets root alone do, and in most containers not even root: mount a disk, make a namespace. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** In which processes have numbers of their own. */
export const NAMESPACE = ["unshare", "--pid", "--fork", "--mount-proc"] as const;

/** Why it cannot be done here; null where it can. */
export const NO_DISK = lackOf(() => {
  const folder = mkdtempSync(join(tmpdir(), "precast-disk-"));
  try {
    mountDisk(folder, "size=64k");
    unmountDisk(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
export const NO_NAMESPACE = lackOf(() => run([...NAMESPACE, "true"]));

/** The name of tests that cannot be run where this is lacking. */
export function unlessLacking(lack: string | null, name: string): string {
  return lack === null ? name : `${name} (skipped: ${lack})`;
}

/** Mounts a tmpfs there. Throws what the system says where it cannot. */
export function mountDisk(folder: string, options: string): void {
  run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder]);
}

/** One that is in use goes when it is not any more. */
export function unmountDisk(folder: string): void {
  if (spawnSync("umount", [folder]).status !== 0) spawnSync("umount", ["-l", folder]);
}

function lackOf(attempt: () => void): string | null {
  if (process.platform !== "linux") return "this is not Linux";
  if (process.getuid?.() !== 0) return "only root can";
  try {
    attempt();
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

function run([program, ...words]: readonly [string, ...string[]]): void {
  const { status, stderr, error } = spawnSync(program, words, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${program} says ${error?.message ?? stderr.trim()}`);
}
