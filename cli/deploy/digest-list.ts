/** Reads and writes the JSON in which manifest, journal and checkpoints list files: a SHA-256 and a size by path. */
import type { FileDigest, FileDigests } from "../build/file-digest.ts";
import { isTreeFile } from "./tree-file.ts";

export type DigestList = Readonly<Record<string, readonly [sha256: string, size: number]>>;

export function listDigests(digests: FileDigests): DigestList {
  return Object.fromEntries([...digests].map(([path, { sha256, size }]) => [path, [sha256, size] as const]));
}

/** Throws for a broken list, and for a path that is no tree file: a deploy may delete the paths in it. */
export function readDigests(list: DigestList): Map<string, FileDigest> {
  return new Map(Object.entries(list).map(([path, digest]) => [path, readDigest(path, digest)] as const));
}

function readDigest(path: string, [sha256, size]: readonly [string, number]): FileDigest {
  if (!isTreeFile(path) || !/^[0-9a-f]{64}$/.test(sha256) || !Number.isInteger(size)) {
    throw new Error("not the digest of a tree file");
  }
  return { sha256, size };
}
