/** Checks the in-memory cache for answers: its size limit, and which entries it evicts. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { openCache } from "../../server/cache.ts";

const KEYS = ["a", "b", "c", "d", "e", "f"];
const key = fc.constantFrom(...KEYS);
const step = fc.oneof(
  fc.record({ kind: fc.constant("keep" as const), key, size: fc.integer({ min: 1, max: 60 }) }),
  fc.record({ kind: fc.constantFrom("find" as const, "drop" as const), key }),
);

describe("a cache", () => {
  test("stays within its size limit, returns the value stored last for a key, and counts its entries", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 100 }), fc.array(step, { maxLength: 60 }), (room, steps) => {
        const cache = openCache<number>(room);
        const last = new Map<string, number>();
        for (const [number, one] of steps.entries()) {
          if (one.kind === "keep") {
            cache.keep(one.key, number, one.size);
            last.set(one.key, number);
            if (one.size <= room) expect(cache.find(one.key)).toBe(number);
          } else if (one.kind === "drop") {
            cache.drop(one.key);
            last.delete(one.key);
          }
          const found = KEYS.filter((name) => cache.find(name) !== undefined);
          for (const name of found) expect(cache.find(name)).toBe(last.get(name));
          const { entries, bytes } = cache.size();
          expect(entries).toBe(found.length);
          expect(bytes).toBeLessThanOrEqual(room);
          expect(bytes === 0).toBe(entries === 0);
        }
      }),
    );
  });

  test("evicts the entry that was read or stored longest ago", () => {
    const cache = openCache<string>(30);
    for (const name of ["first", "read", "unread"]) cache.keep(name, name, 10);
    cache.keep("new", "new", 10);
    expect(cache.find("first")).toBeUndefined();
    cache.find("read");
    cache.keep("newer", "newer", 10);
    expect([cache.find("unread"), cache.find("read")]).toEqual([undefined, "read"]);
  });
});
