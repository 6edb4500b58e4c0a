/**
 * Tells one file from the next that has its name: builds put a new file in the place of each that they change. To look at
 * a file costs as much as to answer from memory, so after a look its answer holds until a build has ended, or for a second.
 */
import { type Stats, statSync } from "node:fs";
import type { Current } from "../../shared/respond.ts";

export type Stamp = { readonly inode: number; readonly modified: number; readonly size: number };

/** Whether the file of a name is still the one with a stamp. Once it is not, it never is again. */
export type Watch = {
  readonly isCurrent: Current;
  /** Looks at the file itself, whatever was seen before. */
  readonly isStill: Current;
};

export type Stamps = { readonly watch: (path: string, stamp: Stamp) => Watch };

/** Milliseconds that a look at the marker holds: less than it takes to hear that a build has ended, and to ask. */
const MOMENT = 0.2;
/** Who changes files otherwise than by a build sees it after so many milliseconds at the latest. */
const LOOK_AGAIN = 1_000;

export function stampOf({ ino, mtimeMs, size }: Stats): Stamp {
  return { inode: ino, modified: mtimeMs, size };
}

/**
 * `marker` is the file that each build replaces last: what a build has ended shows in the next answer. It is looked at
 * once for all requests that come in the same moment. Where there is none, files are looked at as often.
 */
export function openStamps(marker: string): Stamps {
  let mark: Stamp | null = null;
  let builds = 0;
  let lookedAt = Number.NEGATIVE_INFINITY;

  const lookAtMarker = (now: number) => {
    lookedAt = now;
    const before = mark;
    mark = stampAt(marker);
    if (before === null || !isSame(before, mark)) builds += 1;
  };
  const watch: Stamps["watch"] = (path, stamp) => {
    let seenBuilds = -1;
    let seenAt = 0;
    let same = true;
    const isStill = () => {
      same &&= isSame(stamp, stampAt(path));
      return same;
    };
    const isCurrent = () => {
      const now = performance.now();
      if (now - lookedAt > MOMENT) lookAtMarker(now);
      if (!same || (seenBuilds === builds && now - seenAt < LOOK_AGAIN)) return same;
      seenBuilds = builds;
      seenAt = now;
      return isStill();
    };
    return { isCurrent, isStill };
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
