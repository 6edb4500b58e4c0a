/** Compares answers with the files of a tree, and writes those that differ into a stage beside it. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { makeNewer, readOrNull } from "./file.ts";

/** Answers to be written. `bytes` holds all of them, one after the other. */
export type Batch = {
  readonly tree: string;
  /** The folder that takes the new files; null where nothing is to be written. */
  readonly stage: string | null;
  /** Relative to both folders, with `/`. */
  readonly paths: readonly string[];
  /** What is known of the tree's file at each path. */
  readonly existing: readonly ExistingFile[];
  /** The offset in `bytes` at which each answer ends. */
  readonly ends: readonly number[];
  readonly bytes: Uint8Array<ArrayBuffer>;
};

/** `unknown`: the file must be compared. `none`: it does not exist. A number: it differs, its size in bytes. */
export type ExistingFile = "unknown" | "none" | number;

export type Outcome = "same" | "added" | "changed";

/** What became of each answer, and the size in bytes of the file that it replaces; 0 when there is none. */
export type WriteResults = readonly { readonly outcome: Outcome; readonly replacedSize: number }[];

/** `existingFolders` caches those of the stage. */
export function writeBatch(
  { tree, stage, paths, existing, ends, bytes }: Batch,
  existingFolders: Set<string>,
): WriteResults {
  return paths.map((path, index) => {
    const content = bytes.subarray(ends[index - 1] ?? 0, ends[index]);
    const written = compare(content, join(tree, path), existing[index] ?? "unknown");
    if (written.outcome === "same" || stage === null) return written;
    writeNew(join(stage, path), content, existingFolders);
    if (written.outcome === "changed" && written.replacedSize === content.length)
      makeNewer(join(stage, path), join(tree, path));
    return written;
  });
}

function compare(content: Uint8Array, file: string, existing: ExistingFile): WriteResults[number] {
  if (typeof existing === "number") return { outcome: "changed", replacedSize: existing };
  const replaced = existing === "none" ? null : readOrNull(file);
  if (replaced === null) return { outcome: "added", replacedSize: 0 };
  return { outcome: replaced.equals(content) ? "same" : "changed", replacedSize: replaced.length };
}

function writeNew(file: string, content: Uint8Array, existingFolders: Set<string>): void {
  const folder = dirname(file);
  if (!existingFolders.has(folder)) {
    mkdirSync(folder, { recursive: true });
    existingFolders.add(folder);
  }
  writeFileSync(file, content);
}
