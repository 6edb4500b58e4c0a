/** What the server keeps in memory, each within a limit in bytes: answers of the tree, and requests that were read. */
import { LRUCache } from "lru-cache";
import { type Coding, matchesEtag, type RequestContext } from "../shared/api/answer.ts";
import { METHODS, type RawRequest } from "../shared/api/request.ts";
import type { CurrentCheck, ResolvedRequest, ResolvedRequests } from "../shared/api/respond.ts";
import type { EncodedResponse } from "./http/encode.ts";

type Cache<V> = {
  readonly find: (key: string) => V | undefined;
  /** `size` is in bytes; a value larger than the whole cache is not kept. */
  readonly keep: (key: string, value: V, size: number) => void;
  readonly drop: (key: string) => void;
  readonly size: () => { readonly entries: number; readonly bytes: number };
};

export function openCache<V extends object | number | string>(maxBytes: number): Cache<V> {
  // The library takes 0 for no limit.
  const cache = maxBytes < 1 ? null : new LRUCache<string, V>({ maxSize: Math.floor(maxBytes) });
  return {
    find: (key) => cache?.get(key),
    // The library takes only whole sizes of at least 1; an answer's is an estimate.
    keep: (key, value, size) => cache?.set(key, value, { size: Math.max(1, Math.ceil(size)) }),
    drop: (key) => cache?.delete(key),
    size: () => ({ entries: cache?.size ?? 0, bytes: cache?.calculatedSize ?? 0 }),
  };
}

// Remembers complete answers from the tree, headers included, so that a repeated request needs no parsing, reading,
// hashing or rendering.

export type Hit = {
  readonly isCurrent: CurrentCheck;
  readonly etag: string;
  readonly context: RequestContext;
  readonly found: EncodedResponse;
  readonly notModified: EncodedResponse;
};

/** What determines an answer from the tree, besides the tree itself. */
type HitKey = { readonly appKey: string; readonly target: string; readonly coding: Coding | null };

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
      const name = nameHit(key);
      const hit = cache.find(name);
      if (hit === undefined) return null;
      if (hit.isCurrent()) return hit;
      cache.drop(name);
      return null;
    },
    keep: (key, hit) => {
      const name = nameHit(key);
      cache.keep(name, hit, (hit.found.body?.length ?? 0) + 2 * name.length + OVERHEAD);
    },
    size: cache.size,
  };
}

/** Unambiguous, because app keys contain no blanks. */
function nameHit({ appKey, target, coding }: HitKey): string {
  return `${coding} ${appKey} ${target}`;
}

export function isNotModified({ etag }: Hit, ifNoneMatch: string | undefined): boolean {
  return ifNoneMatch !== undefined && matchesEtag(ifNoneMatch, etag);
}

// Remembers requests that were read before and what they mean to their apps: most live requests are repeated.

/** Estimated bytes of a plan, its query and bookkeeping. */
const RESOLVED_OVERHEAD = 8_000;
/** Estimated bytes for each character of the target, which is held as sent, decoded, and in the values of the query. */
const COPIES = 6;

/** `most` is the limit in bytes. */
export function openResolvedRequests(most: number): ResolvedRequests {
  const cache = openCache<ResolvedRequest>(most);

  return {
    find: (raw) => {
      const name = METHODS.includes(raw.method) ? nameRequest(raw) : null;
      return name === null ? null : (cache.find(name) ?? null);
    },
    keep: (raw, resolved) => {
      const name = nameRequest(raw);
      if (name !== null) cache.keep(name, resolved, COPIES * name.length + RESOLVED_OVERHEAD);
    },
  };
}

/** Unambiguous, because app keys contain no blanks. Null without an app key: the text `undefined` is a valid one. */
function nameRequest({ appKey, target }: RawRequest): string | null {
  return appKey === undefined ? null : `${appKey} ${target}`;
}
