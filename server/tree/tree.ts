/** Reads the tree that a build wrote: which apps it has, and the files of their answers. */
import { close, existsSync, fstat, open, readFile } from "node:fs";
import { join } from "node:path";
import { fileOf, folderOf } from "../../shared/address.ts";
import { etagOf } from "../../shared/answer.ts";
import type { App } from "../../shared/catalog.ts";
import type { AppTree, TreeBody } from "../../shared/respond.ts";
import { CHANGES_FILE, ELSEWHERE_FILE, readState, STATE_FOLDER, stateFileOf } from "../../shared/state.ts";
import { openStamps, type Stamp, type Stamps, stampOf, type Watch } from "./stamp.ts";

export type Tree = { readonly findTree: (appKey: string) => Promise<AppTree | null> };

const MISSING = ["ENOENT", "ENOTDIR", "ENAMETOOLONG", "EISDIR"];

/** What was read is current only while the file that it was read from is still that file. */
export function openTree(out: string): Tree {
  const known = new Map<string, Watch & { readonly app: App }>();
  const stamps = openStamps(join(out, STATE_FOLDER, CHANGES_FILE));

  async function findApp(appKey: string) {
    const before = known.get(appKey);
    if (before?.isCurrent()) return before;
    known.delete(appKey);
    if (existsSync(join(out, STATE_FOLDER, ELSEWHERE_FILE))) return null;
    const file = await readStamped(join(out, stateFileOf(appKey)), stamps);
    const app = file === null ? null : (readState(file.bytes.toString())?.app ?? null);
    if (file === null || app === null) return null;
    const found = { app, isCurrent: file.isCurrent, isStill: file.isStill };
    known.set(appKey, found);
    return found;
  }

  return {
    findTree: async (appKey) => {
      const found = await findApp(appKey);
      if (found === null) return null;
      const { app, isCurrent, isStill } = found;
      const folder = join(out, folderOf(appKey));
      const read: AppTree["read"] = async (address) => bodyOf(await readStamped(join(folder, fileOf(address)), stamps));
      return { app, isCurrent, isStill, read };
    },
  };
}

type Stamped = Watch & { readonly bytes: Buffer };

function bodyOf(file: Stamped | null): TreeBody | null {
  if (file === null) return null;
  const { bytes, isCurrent } = file;
  return { bytes, isCurrent, etag: etagOf(bytes) };
}

/** Bytes and stamp are of one file, whatever takes its name meanwhile. */
async function readStamped(path: string, stamps: Stamps): Promise<Stamped | null> {
  const read = await readWhole(path);
  return read === null ? null : { bytes: read.bytes, ...stamps.watch(path, read.stamp) };
}

type Read = { readonly bytes: Buffer; readonly stamp: Stamp };

/** With callbacks: what `node:fs/promises` does for each of these steps costs more than the step. */
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
