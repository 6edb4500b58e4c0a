/** Compares answers with the files of a tree, and writes those that differ into a stage beside it. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** Answers on their way to the disk: the bytes of all of them, one behind the other. */
export type Load = {
  readonly tree: string;
  /** The folder that takes the new files; null where nothing is to be written. */
  readonly stage: string | null;
  /** Relative to both folders, with `/`. */
  readonly paths: readonly string[];
  /** For each path whether the tree may have a file there. */
  readonly compare: readonly boolean[];
  /** Where in `bytes` each answer ends. */
  readonly ends: readonly number[];
  readonly bytes: Uint8Array<ArrayBuffer>;
};

export type Outcome = "same" | "added" | "changed";

/** What became of each answer, and the size of the file that it replaces. */
export type Written = readonly { readonly outcome: Outcome; readonly before: number }[];

/** `made` remembers the folders of the stage. */
export function writeLoad({ tree, stage, paths, compare, ends, bytes }: Load, made: Set<string>): Written {
  return paths.map((path, index) => {
    const content = bytes.subarray(ends[index - 1] ?? 0, ends[index]);
    const before = compare[index] ? readOrNull(join(tree, path)) : null;
    if (before?.equals(content)) return { outcome: "same", before: before.length };
    if (stage !== null) writeNew(join(stage, path), content, made);
    return before === null ? { outcome: "added", before: 0 } : { outcome: "changed", before: before.length };
  });
}

function readOrNull(file: string): Buffer | null {
  try {
    return readFileSync(file);
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "EISDIR"].includes((error as NodeJS.ErrnoException).code ?? "")) return null;
    throw error;
  }
}

function writeNew(file: string, content: Uint8Array, made: Set<string>): void {
  const folder = dirname(file);
  if (!made.has(folder)) {
    mkdirSync(folder, { recursive: true });
    made.add(folder);
  }
  writeFileSync(file, content);
}
