/**
 * The answers of the tree that were given before, finished to the last header: for them nothing is parsed, read, hashed
 * or rendered again.
 */
import { type Circumstances, type Coding, matches } from "../../shared/answer.ts";
import type { Current } from "../../shared/respond.ts";
import type { Ready } from "../http/ready.ts";
import { openCache } from "./cache.ts";

export type Hit = {
  readonly isCurrent: Current;
  readonly etag: string;
  readonly circumstances: Circumstances;
  readonly found: Ready;
  readonly notModified: Ready;
};

/** What decides, with the tree, what the answer is. */
export type HitKey = { readonly appKey: string; readonly target: string; readonly coding: Coding | null };

export type Hits = {
  /** Null for what is not known, or is in the tree no more as it was. */
  readonly find: (key: HitKey) => Hit | null;
  readonly keep: (key: HitKey, hit: Hit) => void;
  /** How much is kept. */
  readonly size: () => { readonly entries: number; readonly bytes: number };
};

/** Of headers and bookkeeping, about. */
const OVERHEAD = 2_000;

/** `most` is in bytes; with 0 nothing is kept. */
export function openHits(most: number): Hits {
  const held = openCache<Hit>(most);

  return {
    find: (key) => {
      const name = nameOf(key);
      const hit = held.find(name);
      if (hit === undefined) return null;
      if (hit.isCurrent()) return hit;
      held.drop(name);
      return null;
    },
    keep: (key, hit) => {
      const name = nameOf(key);
      held.hold(name, hit, (hit.found.body?.length ?? 0) + 2 * name.length + OVERHEAD);
    },
    size: held.size,
  };
}

/** No app key has a blank. */
function nameOf({ appKey, target, coding }: HitKey): string {
  return `${coding} ${appKey} ${target}`;
}

export function isNotModified({ etag }: Hit, ifNoneMatch: string | undefined): boolean {
  return ifNoneMatch !== undefined && matches(ifNoneMatch, etag);
}
