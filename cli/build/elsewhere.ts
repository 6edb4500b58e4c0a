/**
 * The part of a tree that is not here but where it was deployed: `.precast/elsewhere.json` lists it, and what a build reads
 * of it is brought first. To the server such a tree is none.
 */
import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { ELSEWHERE_FILE, STATE_FOLDER } from "../../shared/state.ts";
import { type FileMark, type FileMarks, markOf } from "./file-mark.ts";
import { isFile, moveInto, readText } from "./stage/folder.ts";
import { ForeignTreeError } from "./update/built.ts";

/** Calls `take` with the bytes of each file, null where there is none, several at a time. */
export type Fetch = (paths: readonly string[], take: (path: string, bytes: Uint8Array | null) => void) => Promise<void>;

export type Elsewhere = {
  /** False where nobody can be asked for what is missing: then it is built. */
  readonly isReachable: boolean;
  /** Whether files below a folder are elsewhere. */
  readonly hasBelow: (folder: string) => boolean;
  /** Brings those of these files that are elsewhere. Throws ForeignTreeError for one that is not what it was. */
  readonly bring: (paths: readonly string[]) => Promise<void>;
  readonly bringBelow: (folder: string) => Promise<void>;
  /** The folders of the apps of which files are elsewhere. */
  readonly tops: () => readonly string[];
  /** A folder whose files are all made anew, or go: once the build is done, none of it is elsewhere. */
  readonly replace: (folder: string) => void;
  /** Before a build is committed: what was brought is here. */
  readonly saveBrought: () => void;
  /** Behind it. */
  readonly saveReplaced: () => void;
  readonly brought: () => { readonly files: number; readonly bytes: number };
};

const FETCHED = `${STATE_FOLDER}/fetched`;

/** Null for a list that cannot be read: then nothing is known of what is here. */
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

/** `fetch` is null where nobody can be asked. */
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

/** What has a name is whole, whenever the process ends. */
function writeWhole(out: string, path: string, bytes: Uint8Array, made: Set<string>): void {
  const part = join(out, FETCHED, "part");
  mkdirSync(dirname(part), { recursive: true });
  writeFileSync(part, bytes);
  moveInto(out, path, part, made);
}
