/** Identifies the content of a file of a tree by its SHA-256 and its size. */
import { hash } from "node:crypto";

/** SHA-256 in lower-case hex, and size in bytes. */
export type FileDigest = { readonly sha256: string; readonly size: number };
/** By path relative to the tree. */
export type FileDigests = ReadonlyMap<string, FileDigest>;

export function digestOf(bytes: Uint8Array): FileDigest {
  return { sha256: hash("sha256", bytes, "hex"), size: bytes.length };
}
