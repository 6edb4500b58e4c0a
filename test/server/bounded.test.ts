/** The bound of the memory for answers, whatever is put in and asked for. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { openBounded } from "../../server/memory/bounded.ts";

const KEYS = ["a", "b", "c", "d", "e", "f"];
const key = fc.constantFrom(...KEYS);
const step = fc.oneof(
  fc.record({ kind: fc.constant("hold" as const), key, size: fc.integer({ min: 1, max: 60 }) }),
  fc.record({ kind: fc.constantFrom("find" as const, "drop" as const), key }),
);

describe("a bounded map", () => {
  test("never holds more than its room, gives what was last held, and counts what it holds", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 100 }), fc.array(step, { maxLength: 60 }), (room, steps) => {
        const bounded = openBounded<number>(room);
        const last = new Map<string, number>();
        for (const [number, one] of steps.entries()) {
          if (one.kind === "hold") {
            bounded.hold(one.key, number, one.size);
            last.set(one.key, number);
            if (one.size <= room) expect(bounded.find(one.key)).toBe(number);
          } else if (one.kind === "drop") {
            bounded.drop(one.key);
            last.delete(one.key);
          }
          const found = KEYS.filter((name) => bounded.find(name) !== undefined);
          for (const name of found) expect(bounded.find(name)).toBe(last.get(name));
          const { entries, bytes } = bounded.size();
          expect(entries).toBe(found.length);
          expect(bytes).toBeLessThanOrEqual(room);
          expect(bytes === 0).toBe(entries === 0);
        }
      }),
    );
  });

  test("what is asked for stays, what is not goes first", () => {
    const bounded = openBounded<string>(30);
    for (const name of ["asked for", "forgotten", "new"]) bounded.hold(name, name, 10);
    // All are new until room is needed for the first time.
    bounded.hold("newer", "newer", 10);
    expect(bounded.find("asked for")).toBeUndefined();
    bounded.find("new");
    bounded.hold("newest", "newest", 10);
    expect([bounded.find("forgotten"), bounded.find("new")]).toEqual([undefined, "new"]);
  });
});
