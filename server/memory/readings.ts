/** The requests that were read before, with what they mean to their apps: most that are asked live are asked again. */
import type { Reading } from "../../shared/reading.ts";
import { METHODS, type RawRequest } from "../../shared/request.ts";
import type { Readings } from "../../shared/respond.ts";
import { openCache } from "./cache.ts";

/** Of a plan, its query and bookkeeping, about. */
const OVERHEAD = 8_000;
/** A target, what it was decoded to, and what the query has of it. */
const COPIES = 6;

/** `most` is in bytes. */
export function openReadings(most: number): Readings {
  const held = openCache<Reading>(most);

  return {
    find: (raw) => {
      const name = METHODS.includes(raw.method) ? nameOf(raw) : null;
      return name === null ? null : (held.find(name) ?? null);
    },
    keep: (raw, reading) => {
      const name = nameOf(raw);
      if (name !== null) held.hold(name, reading, COPIES * name.length + OVERHEAD);
    },
  };
}

/** No app key has a blank. Null without one: `undefined` is a key that an app may have. */
function nameOf({ appKey, target }: RawRequest): string | null {
  return appKey === undefined ? null : `${appKey} ${target}`;
}
