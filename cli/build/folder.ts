/**
 * Writes the files of one folder of the tree: only what differs, each file whole or not at all, and what is no longer
 * wanted goes last.
 */
import { lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

export type FolderReport = {
  readonly written: number;
  readonly unchanged: number;
  readonly deleted: number;
  readonly bytes: number;
};

export type Folder = {
  /** `path` is relative to the folder, with `/`. */
  readonly write: (path: string, body: string) => void;
  /** Deletes every file that was not written since the folder was opened. */
  readonly sweep: () => void;
  readonly report: () => FolderReport;
  /** What was written, and what was deleted, as relative paths. */
  readonly changes: { readonly written: readonly string[]; readonly deleted: readonly string[] };
};

/** With `dryRun` nothing is touched, and the report says what would be. */
export function openFolder(root: string, dryRun: boolean): Folder {
  const kept = new Set<string>();
  const made = new Set<string>();
  const changes = { written: [] as string[], deleted: [] as string[] };
  let bytes = 0;

  const write = (path: string, body: string) => {
    const content = Buffer.from(body, "utf8");
    kept.add(path);
    bytes += content.length;
    if (holds(join(root, path), content)) return;
    changes.written.push(path);
    if (!dryRun) writeInto(root, path, content, made);
  };
  const sweep = () => {
    for (const path of filesIn(root)) {
      if (kept.has(path)) continue;
      changes.deleted.push(path);
      if (!dryRun) remove(root, path);
    }
  };
  const report = () => ({
    written: changes.written.length,
    unchanged: kept.size - changes.written.length,
    deleted: changes.deleted.length,
    bytes,
  });
  return { write, sweep, report, changes };
}

/** Writes a file below the root, whatever stands in its way there. */
function writeInto(root: string, path: string, content: Buffer, made: Set<string>): void {
  try {
    writeWhole(join(root, path), content, made);
  } catch (error) {
    if (!["EISDIR", "ENOTDIR", "EEXIST"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
    clearWay(root, path);
    writeWhole(join(root, path), content, made);
  }
}

/** Removes a folder in the place of the file, or files in the place of its folders. */
function clearWay(root: string, path: string): void {
  const file = join(root, path);
  if (lstatOrNull(file)?.isDirectory()) rmSync(file, { recursive: true });
  for (let folder = dirname(path); folder !== "."; folder = dirname(folder)) {
    if (lstatOrNull(join(root, folder))?.isDirectory() === false) rmSync(join(root, folder));
  }
}

function lstatOrNull(file: string) {
  try {
    return lstatSync(file);
  } catch {
    return null;
  }
}

/** A reader sees the old file or the new one, never a part: the new one gets its name when it is complete. */
export function writeWhole(file: string, content: Buffer | string, made: Set<string>): void {
  const folder = dirname(file);
  if (!made.has(folder)) {
    mkdirSync(folder, { recursive: true });
    made.add(folder);
  }
  const unfinished = `${file}.tmp`;
  writeFileSync(unfinished, content);
  renameSync(unfinished, file);
}

function holds(file: string, content: Buffer): boolean {
  try {
    return readFileSync(file).equals(content);
  } catch {
    return false;
  }
}

/** Every file below a folder, as relative paths with `/`; none when there is no folder. */
export function* filesIn(root: string, below = ""): Generator<string> {
  for (const entry of entriesOf(join(root, below))) {
    const path = below === "" ? entry.name : `${below}/${entry.name}`;
    if (entry.isDirectory()) yield* filesIn(root, path);
    else yield path;
  }
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

/** Removes a file and the folders that it leaves empty. */
function remove(root: string, path: string): void {
  rmSync(join(root, path), { force: true });
  for (let folder = dirname(path); folder !== "."; folder = dirname(folder)) {
    try {
      rmdirSync(join(root, folder));
    } catch {
      return;
    }
  }
}
