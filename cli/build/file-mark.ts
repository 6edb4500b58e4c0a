/** Identifies the content of a file of a tree by its SHA-256 and its size. */
import { hash } from "node:crypto";

/** SHA-256 in lower-case hex, and size in bytes. */
export type FileMark = { readonly sha256: string; readonly size: number };
/** File marks by path relative to the tree. */
export type FileMarks = ReadonlyMap<string, FileMark>;

export function markOf(bytes: Uint8Array): FileMark {
  return { sha256: hash("sha256", bytes, "hex"), size: bytes.length };
}
