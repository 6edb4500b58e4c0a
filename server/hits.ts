/**
 * The answers of the tree that were given before, finished to the last header: for them nothing is parsed, read, hashed
 * or rendered again. As many bytes as are allowed are kept, those that were asked for last.
 */
import { LRUCache } from "lru-cache";
import { type Circumstances, type Coding, matches } from "../shared/answer.ts";
import type { Current } from "../shared/respond.ts";
import type { Ready } from "./ready.ts";

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
  const cache = new LRUCache<string, Hit>({
    maxSize: Math.max(most, 1),
    sizeCalculation: ({ found }, key) => (found.body?.length ?? 0) + 2 * key.length + OVERHEAD,
  });

  return {
    find: (key) => {
      const name = nameOf(key);
      const hit = cache.get(name);
      if (hit === undefined) return null;
      if (hit.isCurrent()) return hit;
      cache.delete(name);
      return null;
    },
    keep: (key, hit) => void cache.set(nameOf(key), hit),
    size: () => ({ entries: cache.size, bytes: cache.calculatedSize }),
  };
}

/** No app key has a blank. */
function nameOf({ appKey, target, coding }: HitKey): string {
  return `${coding} ${appKey} ${target}`;
}

export function isNotModified({ etag }: Hit, ifNoneMatch: string | undefined): boolean {
  return ifNoneMatch !== undefined && matches(ifNoneMatch, etag);
}
