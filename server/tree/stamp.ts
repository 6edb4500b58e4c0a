/**
 * Tells whether a file has been replaced by another one of its name: builds replace each file that they change.
 * Checking a file costs as much as answering from memory, so the result is reused until a build has ended, for at most
 * a second.
 */
import { type Stats, statSync } from "node:fs";
import type { CurrentCheck } from "../../shared/app-tree.ts";

export type Stamp = { readonly inode: number; readonly modified: number; readonly size: number };

/** Tells whether the file at a path is still the one with a given stamp. Once it is not, it never is again. */
export type Watch = {
  readonly isCurrent: CurrentCheck;
  /** Checks the file now instead of reusing an earlier result. */
  readonly isCurrentOnDisk: CurrentCheck;
};

export type Stamps = { readonly watch: (path: string, stamp: Stamp) => Watch };

/** Milliseconds for which a check of the marker is reused: less than it takes to hear of a build and send a request. */
const MARKER_RECHECK_AFTER = 0.2;
/** Milliseconds after which a file is checked again, for changes that no build has made. */
const FILE_RECHECK_AFTER = 1_000;

export function stampOf({ ino, mtimeMs, size }: Stats): Stamp {
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
    return found === undefined ? null : stampOf(found);
  } catch {
    return null;
  }
}

function isSame(one: Stamp, other: Stamp | null): boolean {
  return other !== null && one.inode === other.inode && one.modified === other.modified && one.size === other.size;
}
