/** Reads the tree that a build wrote: which apps it has, and the files of their answers. */
import { close, existsSync, fstat, open, readFile, type Stats, statSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { nameFile, nameFolder } from "../shared/api/address.ts";
import { makeEtag } from "../shared/api/answer.ts";
import type { App } from "../shared/api/catalog.ts";
import type { AppTree, CurrentCheck } from "../shared/api/respond.ts";
import { CHANGES_FILE, isCatalogOf, nameStateFile, REMOTE_FILE, readStateAt, STATE_FOLDER } from "../shared/tree.ts";

export type Tree = { readonly findTree: (appKey: string) => Promise<AppTree | null> };

const MISSING = ["ENOENT", "ENOTDIR", "ENAMETOOLONG", "EISDIR"];

/**
 * What was read stays current until the file that it was read from is replaced. An app whose files are those of another
 * app has no tree, of which `warn` is told once.
 */
export function openTree(out: string, warn: (sentence: string) => void = () => {}): Tree {
  const warned = new Set<string>();
  const known = new Map<string, Watch & { readonly app: App }>();
  const canonical = openCanonicalApps();
  const stamps = openStamps(join(out, STATE_FOLDER, CHANGES_FILE));

  async function findApp(appKey: string): Promise<(Watch & { readonly app: App }) | null> {
    const before = known.get(appKey);
    if (before?.isCurrent()) return before;
    known.delete(appKey);
    const path = join(out, nameStateFile(appKey));
    if (isMissing(path) || existsSync(join(out, STATE_FOLDER, REMOTE_FILE))) return null;
    const file = await readStamped(path, stamps);
    if (file === null) return null;
    const state = readStateAt(nameStateFile(appKey), file.bytes.toString());
    const catalog = await readStamped(join(out, nameFolder(appKey), nameFile({ kind: "catalog" })), stamps);
    if (state === null || !isCatalogOf(state, catalog?.bytes.toString() ?? "", out)) {
      // A build has ended between the two reads.
      if (!file.isCurrentOnDisk()) return findApp(appKey);
      if (!warned.has(appKey)) warn(describeForeignTree(out, appKey));
      warned.add(appKey);
      return null;
    }
    warned.delete(appKey);
    const found = {
      app: canonical(state.app),
      isCurrent: () => file.isCurrent() && (catalog === null || catalog.isCurrent()),
      isCurrentOnDisk: () => file.isCurrentOnDisk() && (catalog === null || catalog.isCurrentOnDisk()),
    };
    known.set(appKey, found);
    return found;
  }

  return {
    findTree: async (appKey) => {
      const found = await findApp(appKey);
      if (found === null) return null;
      const { app, isCurrentOnDisk } = found;
      const read: AppTree["read"] = async (address) => {
        const file = await readStamped(join(out, nameFolder(appKey), nameFile(address)), stamps);
        if (file === null) return null;
        const { bytes } = file;
        return { bytes, etag: makeEtag(bytes), isCurrent: () => found.isCurrent() && file.isCurrent() };
      };
      return { app, isCurrentOnDisk, read };
    },
  };
}

function describeForeignTree(out: string, appKey: string): string {
  return `The files of ${appKey} in ${out} are damaged or those of another app, and all its requests are answered live. Run \`precast build --full\`.`;
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

/** Bytes and stamp come from one open file, even if its path is replaced meanwhile. Null when there is no file. */
export async function readStamped(path: string, stamps: Stamps): Promise<Stamped | null> {
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
        readFile(descriptor, (error, bytes) => end(error, { bytes, stamp: takeStamp(stats) }));
      });
    });
  });
}

// Tells whether a file has been replaced by another one of its name: builds replace each file that they change.
// Checking a file costs as much as answering from memory, so the result is reused until a build has ended, for at
// most a second.

type Stamp = { readonly inode: number; readonly modified: number; readonly size: number };

/** Tells whether the file at a path is still the one with a given stamp. Once it is not, it never is again. */
export type Watch = {
  readonly isCurrent: CurrentCheck;
  /** Checks the file now instead of reusing an earlier result. */
  readonly isCurrentOnDisk: CurrentCheck;
};

type Stamps = { readonly watch: (path: string, stamp: Stamp) => Watch };

/** Milliseconds for which a check of the marker is reused: less than it takes to hear of a build and send a request. */
const MARKER_RECHECK_AFTER = 0.2;
/** Milliseconds after which a file is checked again, for changes that no build has made. */
const FILE_RECHECK_AFTER = 1_000;

function takeStamp({ ino, mtimeMs, size }: Stats): Stamp {
  return { inode: ino, modified: mtimeMs, size };
}

/**
 * `marker` is the path of the file that each build replaces last, so a finished build shows in the next answer. One
 * check of it serves all requests of the same moment. When there is no such file, each file is checked as often as the
 * marker would be.
 */
export function openStamps(marker: string): Stamps {
  let markerStamp: Stamp | null = null;
  let builds = 0;
  let markerCheckedAt = Number.NEGATIVE_INFINITY;

  const checkMarker = (now: number) => {
    markerCheckedAt = now;
    const before = markerStamp;
    markerStamp = stampAt(marker);
    if (before === null || !isSame(before, markerStamp)) builds += 1;
  };
  const watch: Stamps["watch"] = (path, stamp) => {
    let seenBuilds = -1;
    let checkedAt = 0;
    let same = true;
    const isCurrentOnDisk = () => {
      same &&= isSame(stamp, stampAt(path));
      return same;
    };
    const isCurrent = () => {
      const now = performance.now();
      if (now - markerCheckedAt > MARKER_RECHECK_AFTER) checkMarker(now);
      if (!same || (seenBuilds === builds && now - checkedAt < FILE_RECHECK_AFTER)) return same;
      seenBuilds = builds;
      checkedAt = now;
      return isCurrentOnDisk();
    };
    return { isCurrent, isCurrentOnDisk };
  };
  return { watch };
}

/** Null when there is no such file, and when it cannot be checked: reading it then reports the error. */
function stampAt(path: string): Stamp | null {
  try {
    const found = statSync(path, { throwIfNoEntry: false });
    return found === undefined ? null : takeStamp(found);
  } catch {
    return null;
  }
}

function isSame(one: Stamp, other: Stamp | null): boolean {
  return other !== null && one.inode === other.inode && one.modified === other.modified && one.size === other.size;
}

// Replaces equal app objects by one object, so that what is known of an app holds for as long as it does not change:
// each build gives its state another file, and a write that changes nothing of it may give it another text in the
// database.

type CanonicalAppOf = (app: App) => App;

export function openCanonicalApps(): CanonicalAppOf {
  /** The latest version of each app, by key. */
  const latest = new Map<string, App>();

  return (app) => {
    const before = latest.get(app.key);
    if (before !== undefined && isDeepStrictEqual(before, app)) return before;
    latest.set(app.key, app);
    return app;
  };
}
