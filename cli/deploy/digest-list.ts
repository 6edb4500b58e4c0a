/** Reads and writes the JSON in which manifest, journal and checkpoints list files: a SHA-256 and a size by path. */
import type { FileDigest, FileDigests } from "../build/file-digest.ts";
import { isTreeFile } from "./tree-file.ts";

export type MarkList = Readonly<Record<string, readonly [sha256: string, size: number]>>;

export function listMarks(marks: FileDigests): MarkList {
  return Object.fromEntries([...marks].map(([path, { sha256, size }]) => [path, [sha256, size] as const]));
}

/** Throws for a broken list, and for a path that is no tree file: a deploy may delete the paths in it. */
export function readMarks(list: MarkList): Map<string, FileDigest> {
  return new Map(Object.entries(list).map(([path, mark]) => [path, readMark(path, mark)] as const));
}

function readMark(path: string, [sha256, size]: readonly [string, number]): FileDigest {
  if (!isTreeFile(path) || !/^[0-9a-f]{64}$/.test(sha256) || !Number.isInteger(size)) {
    throw new Error("no mark of a file");
  }
  return { sha256, size };
}
