/** Compares answers with the files of a tree, and writes those that differ into a stage beside it. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { makeNewer, readOrNull } from "./folder.ts";

/** Answers to be written. `bytes` holds all of them, one after the other. */
export type Load = {
  readonly tree: string;
  /** The folder that takes the new files; null where nothing is to be written. */
  readonly stage: string | null;
  /** Relative to both folders, with `/`. */
  readonly paths: readonly string[];
  /** What is known of the tree's file at each path. */
  readonly standing: readonly Standing[];
  /** The offset in `bytes` at which each answer ends. */
  readonly ends: readonly number[];
  readonly bytes: Uint8Array<ArrayBuffer>;
};

/** `unknown`: the file must be compared. `none`: it does not exist. A number: it differs, its size in bytes. */
export type Standing = "unknown" | "none" | number;

export type Outcome = "same" | "added" | "changed";

/** What became of each answer, and the size in bytes of the file that it replaces; 0 when there is none. */
export type Written = readonly { readonly outcome: Outcome; readonly before: number }[];

/** `made` caches which folders of the stage exist. */
export function writeLoad({ tree, stage, paths, standing, ends, bytes }: Load, made: Set<string>): Written {
  return paths.map((path, index) => {
    const content = bytes.subarray(ends[index - 1] ?? 0, ends[index]);
    const written = compare(content, join(tree, path), standing[index] ?? "unknown");
    if (written.outcome === "same" || stage === null) return written;
    writeNew(join(stage, path), content, made);
    if (written.outcome === "changed" && written.before === content.length)
      makeNewer(join(stage, path), join(tree, path));
    return written;
  });
}

function compare(content: Uint8Array, file: string, standing: Standing): Written[number] {
  if (typeof standing === "number") return { outcome: "changed", before: standing };
  const before = standing === "none" ? null : readOrNull(file);
  if (before === null) return { outcome: "added", before: 0 };
  return { outcome: before.equals(content) ? "same" : "changed", before: before.length };
}

function writeNew(file: string, content: Uint8Array, made: Set<string>): void {
  const folder = dirname(file);
  if (!made.has(folder)) {
    mkdirSync(folder, { recursive: true });
    made.add(folder);
  }
  writeFileSync(file, content);
}
