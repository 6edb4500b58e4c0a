/**
 * Manages the files of a tree that exist only where it was deployed: `.precast/elsewhere.json` lists them, and a build
 * fetches those that it needs before it reads them. The server does not use such an incomplete tree.
 */
import { join } from "node:path";
import { outputFileSync, removeSync } from "fs-extra/esm";
import * as z from "zod";
import type { App } from "../../shared/api/catalog.ts";
import { exists, isFile, readText, writeAtomic } from "../../shared/files.ts";
import { once, parseJson } from "../../shared/settings/zod.ts";
import {
  digestBytes,
  digestSchema,
  type FileDigests,
  REMOTE_FILE,
  STATE_FOLDER,
  type TreeApp,
} from "../../shared/tree.ts";
import { isTreeFile } from "../../shared/tree-file.ts";
import { ForeignTreeError } from "./built.ts";

/** Fetches several files at a time. Calls `take` with the bytes of each, or null when it does not exist. */
export type Fetch = (paths: readonly string[], take: (path: string, bytes: Uint8Array | null) => void) => Promise<void>;

export type RemoteFiles = ReturnType<typeof openRemoteFiles>;

const LIST = `${STATE_FOLDER}/${REMOTE_FILE}`;
const FETCHED = `${STATE_FOLDER}/fetched`;

/** Whether some files of the tree exist only where it was deployed: the server does not use such a tree. */
export function isPartialTree(out: string): boolean {
  return exists(join(out, LIST));
}

const listSchema = once(() => z.array(z.tuple([z.string().refine(isTreeFile), digestSchema()])));

/** Empty when there is no list; null when it cannot be read, so that it is unknown which files are here. */
export function readRemoteFiles(out: string): FileDigests | null {
  const list = parseJson(readText(join(out, LIST)) ?? "[]", listSchema());
  return list === null ? null : new Map(list);
}

export function writeRemoteFiles(out: string, digests: FileDigests): void {
  const file = join(out, LIST);
  if (digests.size === 0) removeSync(file);
  else writeAtomic(out, LIST, JSON.stringify([...digests]), `${file}.new`);
}

/** `fetch` is null when there is no place to fetch from. */
export function openRemoteFiles(out: string, fetch: Fetch | null) {
  const digests = new Map(readRemoteFiles(out) ?? []);
  const replaced: string[] = [];
  const total = { files: 0, bytes: 0 };
  const before = digests.size;

  const take = (path: string, bytes: Uint8Array | null) => {
    if (bytes === null || digestBytes(bytes).sha256 !== digests.get(path)?.sha256) throw new ForeignTreeError(path);
    writeAtomic(out, path, bytes, join(out, FETCHED, "part"));
    digests.delete(path);
    total.files += 1;
    total.bytes += bytes.length;
  };
  /** Fetches those of these files that are elsewhere. Throws ForeignTreeError when one is missing or has changed. */
  const fetchFiles = async (paths: readonly string[]) => {
    const missing = paths.filter((path) => digests.has(path) && !isFile(join(out, path)));
    if (fetch !== null && missing.length > 0) await fetch(missing, take);
  };
  const below = (folder: string) => [...digests.keys()].filter((path) => path.startsWith(`${folder}/`));
  return {
    /** False when there is no place to fetch from: apps with files elsewhere are then built in full. */
    isReachable: fetch !== null,
    /** Whether files below a folder are elsewhere. */
    hasBelow: (folder: string) => below(folder).length > 0,
    fetchFiles,
    fetchBelow: (folder: string) => fetchFiles(below(folder)),
    /** Folder names of the apps that have files elsewhere. */
    appFolders: () => [...new Set([...digests.keys()].map((path) => path.slice(0, path.indexOf("/"))))],
    /** Registers a folder whose files are all rewritten or deleted: after the build, none of them is elsewhere. */
    addReplaced: (folder: string) => void replaced.push(folder),
    /** To be called before a build is committed: removes the fetched files from the list. */
    saveFetched: () => {
      if (total.files > 0) writeRemoteFiles(out, digests);
    },
    /** To be called after the commit: removes the files of replaced folders from the list. */
    saveReplaced: () => {
      for (const path of replaced.flatMap(below)) digests.delete(path);
      if (digests.size < before) writeRemoteFiles(out, digests);
      removeSync(join(out, FETCHED));
    },
    fetched: () => ({ ...total }),
  };
}

// Lists the apps of the database that a tree lacks, because it was built with --app: what a deploy finds of them at
// its target is not surplus.

/** Absent when the tree has every app. */
const MISSING_APPS = `${STATE_FOLDER}/others.json`;

/** Whether the tree has every app that the database had at the last build. */
export function hasAllApps(out: string): boolean {
  return !exists(join(out, MISSING_APPS));
}

/** Keys of the apps that the tree still lacks when those that are chosen are built. */
export function missingApps(all: readonly App[], chosen: readonly App[], treeApps: readonly TreeApp[]): string[] {
  const keys = new Set([...chosen, ...treeApps].map(({ key }) => key));
  return all.map(({ key }) => key).filter((key) => !keys.has(key));
}

export function writeMissingApps(out: string, keys: readonly string[]): void {
  if (keys.length === 0) removeSync(join(out, MISSING_APPS));
  else outputFileSync(join(out, MISSING_APPS), `${JSON.stringify(keys)}\n`);
}
