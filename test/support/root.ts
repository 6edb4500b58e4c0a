/** What Linux alone tells of processes, and what only root may do there: mount a disk, make a namespace. */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The command that runs a program in a PID namespace of its own. */
export const NAMESPACE = ["unshare", "--pid", "--fork", "--mount-proc"] as const;

/** Why this machine cannot mount a disk; null where it can. */
export const NO_DISK = lackOf(() => {
  const folder = mkdtempSync(join(tmpdir(), "precast-disk-"));
  try {
    mountDisk(folder, "size=64k");
    unmountDisk(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
/** Why this machine cannot lay one folder over another, as containers do with their images; null where it can. */
export const NO_OVERLAY =
  NO_DISK ??
  lackOf(() => {
    const folder = mkdtempSync(join(tmpdir(), "precast-overlay-"));
    try {
      unmountDisk(mountOverlay(folder));
    } finally {
      unmountDisk(folder);
      rmSync(folder, { recursive: true, force: true });
    }
  });
export const NO_NAMESPACE = lackOf(() => run([...NAMESPACE, "true"]));

/** The ids of the processes that a process has started and that have not ended. */
export function childrenOf({ pid }: { readonly pid: number }): number[] {
  const text = execFileSync("ps", ["-A", "-o", "pid=,ppid=,stat="], { encoding: "utf8" });
  const rows = text.split("\n").map((line) => line.trim().split(/\s+/));
  return rows.flatMap(([child, parent, state]) =>
    Number(parent) === pid && !state?.startsWith("Z") ? [Number(child)] : [],
  );
}

/** A test's title, with the reason why it is skipped where there is one. */
export function unlessLacking(lack: string | null, name: string): string {
  return lack === null ? name : `${name} (skipped: ${lack})`;
}

/** Mounts a tmpfs. Throws with the system's message when that fails. */
export function mountDisk(folder: string, options: string): void {
  run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder]);
}

/**
 * Mounts a tmpfs at `disk`, and on it a folder such as a container has: it shows what `fill` writes into its image, which
 * stays as it is. Returns the folder: unmount that, then `disk`.
 */
export function mountOverlay(disk: string, fill: (image: string) => void = () => {}): string {
  mountDisk(disk, "size=8m");
  for (const name of ["image", "changes", "work", "folder"]) mkdirSync(join(disk, name));
  fill(join(disk, "image"));
  const layers = `lowerdir=${disk}/image,upperdir=${disk}/changes,workdir=${disk}/work`;
  run(["mount", "-t", "overlay", "-o", layers, "overlay", join(disk, "folder")]);
  return join(disk, "folder");
}

/** A disk that is in use is unmounted as soon as nothing uses it. */
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
