/**
 * Remembers complete answers from the tree, headers included, so that a repeated request needs no parsing, reading,
 * hashing or rendering.
 */
import type { Circumstances } from "../../shared/answer.ts";
import type { CurrentCheck } from "../../shared/app-tree.ts";
import { type Coding, matchesEtag } from "../../shared/etag.ts";
import type { Ready } from "../http/ready.ts";
import { openCache } from "./cache.ts";

export type Hit = {
  readonly isCurrent: CurrentCheck;
  readonly etag: string;
  readonly circumstances: Circumstances;
  readonly found: Ready;
  readonly notModified: Ready;
};

/** What determines an answer from the tree, besides the tree itself. */
export type HitKey = { readonly appKey: string; readonly target: string; readonly coding: Coding | null };

export type Hits = {
  /** Null when no answer is kept, or the tree has changed since it was made. */
  readonly find: (key: HitKey) => Hit | null;
  readonly keep: (key: HitKey, hit: Hit) => void;
  /** Number of answers that are kept, and their estimated bytes. */
  readonly size: () => { readonly entries: number; readonly bytes: number };
};

/** Estimated bytes of headers and bookkeeping for each answer. */
const OVERHEAD = 2_000;

/** `most` is the limit in bytes; with 0 nothing is kept. */
export function openHits(most: number): Hits {
  const cache = openCache<Hit>(most);

  return {
    find: (key) => {
      const name = nameOf(key);
      const hit = cache.find(name);
      if (hit === undefined) return null;
      if (hit.isCurrent()) return hit;
      cache.drop(name);
      return null;
    },
    keep: (key, hit) => {
      const name = nameOf(key);
      cache.keep(name, hit, (hit.found.body?.length ?? 0) + 2 * name.length + OVERHEAD);
    },
    size: cache.size,
  };
}

/** Unambiguous, because app keys contain no blanks. */
function nameOf({ appKey, target, coding }: HitKey): string {
  return `${coding} ${appKey} ${target}`;
}

export function isNotModified({ etag }: Hit, ifNoneMatch: string | undefined): boolean {
  return ifNoneMatch !== undefined && matchesEtag(ifNoneMatch, etag);
}
