/** Remembers requests that were read before and what they mean to their apps: most live requests are repeated. */
import type { Reading } from "../../shared/reading.ts";
import { METHODS, type RawRequest } from "../../shared/request.ts";
import type { Readings } from "../../shared/respond.ts";
import { openCache } from "./cache.ts";

/** Estimated bytes of a plan, its query and bookkeeping. */
const OVERHEAD = 8_000;
/** Estimated bytes for each character of the target, which is held as sent, decoded, and in the values of the query. */
const COPIES = 6;

/** `most` is the limit in bytes. */
export function openReadings(most: number): Readings {
  const cache = openCache<Reading>(most);

  return {
    find: (raw) => {
      const name = METHODS.includes(raw.method) ? nameOf(raw) : null;
      return name === null ? null : (cache.find(name) ?? null);
    },
    keep: (raw, reading) => {
      const name = nameOf(raw);
      if (name !== null) cache.keep(name, reading, COPIES * name.length + OVERHEAD);
    },
  };
}

/** Unambiguous, because app keys contain no blanks. Null without an app key: the text `undefined` is a valid one. */
function nameOf({ appKey, target }: RawRequest): string | null {
  return appKey === undefined ? null : `${appKey} ${target}`;
}
