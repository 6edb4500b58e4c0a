/** Reads the tree that a build wrote: which apps it has, and the files of their answers. */
import { close, existsSync, fstat, open, readFile, statSync } from "node:fs";
import { join } from "node:path";
import { fileOf, folderOf } from "../../shared/address.ts";
import type { AppTree, TreeBody } from "../../shared/app-tree.ts";
import type { App } from "../../shared/catalog.ts";
import { etagOf } from "../../shared/etag.ts";
import { CHANGES_FILE, ELSEWHERE_FILE, readState, STATE_FOLDER, stateFileOf } from "../../shared/state.ts";
import { openCanonicalApps } from "../live/canonical-apps.ts";
import { openStamps, type Stamp, type Stamps, stampOf, type Watch } from "./stamp.ts";

export type Tree = { readonly findTree: (appKey: string) => Promise<AppTree | null> };

const MISSING = ["ENOENT", "ENOTDIR", "ENAMETOOLONG", "EISDIR"];

/** What was read stays current until the file that it was read from is replaced. */
export function openTree(out: string): Tree {
  const known = new Map<string, Watch & { readonly app: App }>();
  const canonicalAppOf = openCanonicalApps();
  const stamps = openStamps(join(out, STATE_FOLDER, CHANGES_FILE));

  async function findApp(appKey: string) {
    const before = known.get(appKey);
    if (before?.isCurrent()) return before;
    known.delete(appKey);
    const path = join(out, stateFileOf(appKey));
    if (isMissing(path) || existsSync(join(out, STATE_FOLDER, ELSEWHERE_FILE))) return null;
    const file = await readStamped(path, stamps);
    const app = file === null ? null : (readState(file.bytes.toString())?.app ?? null);
    if (file === null || app === null) return null;
    const found = { app: canonicalAppOf(app), isCurrent: file.isCurrent, isCurrentOnDisk: file.isCurrentOnDisk };
    known.set(appKey, found);
    return found;
  }

  return {
    findTree: async (appKey) => {
      const found = await findApp(appKey);
      if (found === null) return null;
      const { app, isCurrent, isCurrentOnDisk } = found;
      const folder = join(out, folderOf(appKey));
      const read: AppTree["read"] = async (address) => bodyOf(await readStamped(join(folder, fileOf(address)), stamps));
      return { app, isCurrent, isCurrentOnDisk, read };
    },
  };
}

/** Without a tree, every request looks for the app in it, and a failed open costs as much as a tenth of a list. */
function isMissing(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) === undefined;
  } catch {
    // Reading it then reports the error.
    return false;
  }
}

type Stamped = Watch & { readonly bytes: Buffer };

function bodyOf(file: Stamped | null): TreeBody | null {
  if (file === null) return null;
  const { bytes, isCurrent } = file;
  return { bytes, isCurrent, etag: etagOf(bytes) };
}

/** Bytes and stamp come from one open file, even if its path is replaced meanwhile. Null when there is no file. */
async function readStamped(path: string, stamps: Stamps): Promise<Stamped | null> {
  const read = await readWhole(path);
  return read === null ? null : { bytes: read.bytes, ...stamps.watch(path, read.stamp) };
}

type Read = { readonly bytes: Buffer; readonly stamp: Stamp };

/** Uses callbacks, because the overhead of `node:fs/promises` for each of these steps exceeds that of the step. */
function readWhole(path: string): Promise<Read | null> {
  return new Promise((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException) => (MISSING.includes(error.code ?? "") ? resolve(null) : reject(error));
    open(path, (error, descriptor) => {
      if (error) return fail(error);
      const end = (failure: NodeJS.ErrnoException | null, read?: Read) =>
        close(descriptor, () => (failure === null ? resolve(read ?? null) : fail(failure)));
      fstat(descriptor, (error, stats) => {
        if (error) return end(error);
        readFile(descriptor, (error, bytes) => end(error, { bytes, stamp: stampOf(stats) }));
      });
    });
  });
}
