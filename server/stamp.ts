/**
 * Tells one file from the next that has its name: builds put a new file in the place of each that they change. To look at
 * a file costs as much as to answer from memory, so after a look its answer holds until a build has ended, or for a second.
 */
import { type Stats, statSync } from "node:fs";
import type { Current } from "../shared/respond.ts";

export type Stamp = { readonly inode: number; readonly modified: number; readonly size: number };

export type Stamps = {
  /** Whether the file of this name is still the one with this stamp. Once it is not, it never is again. */
  readonly watch: (path: string, stamp: Stamp) => Current;
};

/** Who changes files otherwise than by a build sees it after so many milliseconds at the latest. */
const LOOK_AGAIN = 1_000;

export function stampOf({ ino, mtimeMs, size }: Stats): Stamp {
  return { inode: ino, modified: mtimeMs, size };
}

/**
 * `marker` is the file that each build replaces last. It is looked at once per turn of the event loop, however many
 * requests that turn brings: what a build has ended before a request came shows in its answer. Where there is none, files
 * are looked at in each turn.
 */
export function openStamps(marker: string): Stamps {
  let mark: Stamp | null = null;
  let builds = 0;
  let time = 0;
  let isLookedAt = false;

  const nextTurn = () => {
    isLookedAt = false;
  };
  const lookAtMarker = () => {
    isLookedAt = true;
    setImmediate(nextTurn);
    time = performance.now();
    const before = mark;
    mark = stampAt(marker);
    if (before === null || !isSame(before, mark)) builds += 1;
  };
  const watch: Stamps["watch"] = (path, stamp) => {
    let seen = { builds: -1, time: 0 };
    let isCurrent = true;
    return () => {
      if (!isLookedAt) lookAtMarker();
      if (!isCurrent || (seen.builds === builds && time - seen.time < LOOK_AGAIN)) return isCurrent;
      seen = { builds, time };
      isCurrent = isSame(stamp, stampAt(path));
      return isCurrent;
    };
  };
  return { watch };
}

/** Null where there is no such file, and where it cannot be looked at: who reads it then is told why. */
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
