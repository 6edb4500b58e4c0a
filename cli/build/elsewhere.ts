/**
 * Manages the files of a tree that exist only where it was deployed: `.precast/elsewhere.json` lists them, and a build
 * fetches those that it needs before it reads them. The server does not use such an incomplete tree.
 */
import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { ELSEWHERE_FILE, STATE_FOLDER } from "../../shared/state.ts";
import { type FileMark, type FileMarks, markOf } from "./file-mark.ts";
import { isFile, moveInto, readText } from "./stage/folder.ts";
import { ForeignTreeError } from "./update/built.ts";

/** Fetches several files at a time. Calls `take` with the bytes of each, or null when it does not exist. */
export type Fetch = (paths: readonly string[], take: (path: string, bytes: Uint8Array | null) => void) => Promise<void>;

export type Elsewhere = {
  /** False when there is no place to fetch from: apps with files elsewhere are then built in full. */
  readonly isReachable: boolean;
  /** Whether files below a folder are elsewhere. */
  readonly hasBelow: (folder: string) => boolean;
  /** Fetches those of these files that are elsewhere. Throws ForeignTreeError when one is missing or has changed. */
  readonly bring: (paths: readonly string[]) => Promise<void>;
  readonly bringBelow: (folder: string) => Promise<void>;
  /** Folder names of the apps that have files elsewhere. */
  readonly tops: () => readonly string[];
  /** Registers a folder whose files are all rewritten or deleted: after the build, none of them is elsewhere. */
  readonly replace: (folder: string) => void;
  /** To be called before a build is committed: removes the fetched files from the list. */
  readonly saveBrought: () => void;
  /** To be called after the commit: removes the files of replaced folders from the list. */
  readonly saveReplaced: () => void;
  readonly brought: () => { readonly files: number; readonly bytes: number };
};

const FETCHED = `${STATE_FOLDER}/fetched`;

/** Empty when there is no list; null when it cannot be read, so that it is unknown which files are here. */
export function readElsewhere(out: string): FileMarks | null {
  const text = readText(join(out, STATE_FOLDER, ELSEWHERE_FILE));
  try {
    return new Map(text === null ? [] : (JSON.parse(text) as [string, FileMark][]));
  } catch {
    return null;
  }
}

export function writeElsewhere(out: string, marks: FileMarks): void {
  const file = join(out, STATE_FOLDER, ELSEWHERE_FILE);
  if (marks.size === 0) rmSync(file, { force: true });
  else {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(`${file}.new`, JSON.stringify([...marks]));
    renameSync(`${file}.new`, file);
  }
}

/** `fetch` is null when there is no place to fetch from. */
export function openElsewhere(out: string, fetch: Fetch | null): Elsewhere {
  const marks = new Map(readElsewhere(out) ?? []);
  const replaced: string[] = [];
  const made = new Set<string>();
  const total = { files: 0, bytes: 0 };
  const before = marks.size;

  const take = (path: string, bytes: Uint8Array | null) => {
    if (bytes === null || markOf(bytes).sha256 !== marks.get(path)?.sha256) throw new ForeignTreeError(path);
    writeWhole(out, path, bytes, made);
    marks.delete(path);
    total.files += 1;
    total.bytes += bytes.length;
  };
  const bring = async (paths: readonly string[]) => {
    const missing = paths.filter((path) => marks.has(path) && !isFile(join(out, path)));
    if (fetch !== null && missing.length > 0) await fetch(missing, take);
  };
  const below = (folder: string) => [...marks.keys()].filter((path) => path.startsWith(`${folder}/`));
  return {
    isReachable: fetch !== null,
    hasBelow: (folder) => marks.size > 0 && below(folder).length > 0,
    bring,
    bringBelow: (folder) => bring(below(folder)),
    tops: () => [...new Set([...marks.keys()].map((path) => path.slice(0, path.indexOf("/"))))],
    replace: (folder) => void replaced.push(folder),
    saveBrought: () => {
      if (total.files > 0) writeElsewhere(out, marks);
    },
    saveReplaced: () => {
      for (const path of replaced.flatMap(below)) marks.delete(path);
      if (marks.size < before) writeElsewhere(out, marks);
      rmSync(join(out, FETCHED), { recursive: true, force: true });
    },
    brought: () => ({ ...total }),
  };
}

/** Writes a temporary file and renames it, so that no file of the tree is ever incomplete, even if the process dies. */
function writeWhole(out: string, path: string, bytes: Uint8Array, made: Set<string>): void {
  const part = join(out, FETCHED, "part");
  mkdirSync(dirname(part), { recursive: true });
  writeFileSync(part, bytes);
  moveInto(out, path, part, made);
}
