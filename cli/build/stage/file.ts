/** Tells what is at a path, and reads files of a tree. */
import { lstatSync, readFileSync, statSync, utimesSync } from "node:fs";

/** The bytes of a file; null where there is none. */
export function readOrNull(file: string): Buffer | null {
  try {
    return readFileSync(file);
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "EISDIR"].includes(codeOf(error))) return null;
    throw error;
  }
}

export function readText(file: string): string | null {
  return readOrNull(file)?.toString("utf8") ?? null;
}

/** How many bytes a file has; null where there is none. */
export function sizeOf(file: string): number | null {
  try {
    return lstatSync(file).size;
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(codeOf(error))) return null;
    throw error;
  }
}

export function exists(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    if (codeOf(error) === "ENOTDIR") return false;
    throw error;
  }
}

export function isFolder(path: string): boolean {
  return exists(path) && lstatSync(path).isDirectory();
}

export function isFile(path: string): boolean {
  return exists(path) && lstatSync(path).isFile();
}

/**
 * Gives `file` a modification time in a later second than that of `former`. Web servers derive ETags from the size and
 * the modification time in seconds, so new content of the same size needs another second.
 */
export function makeNewer(file: string, former: string): void {
  const next = Math.floor((statSync(former, { throwIfNoEntry: false })?.mtimeMs ?? 0) / 1_000) + 1;
  if (statSync(file).mtimeMs < next * 1_000) utimesSync(file, next, next);
}

/** The code of a failed system call, as `ENOENT`. */
export function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? "";
}
