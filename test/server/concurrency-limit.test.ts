/** How much slow work may run at once, by what has come too late and what has come in time. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { openConcurrencyLimit } from "../../server/load/concurrency-limit.ts";

test("it is cut in half once for all that ran when it was cut", () => {
  const { places, tooLate } = openConcurrencyLimit(8);
  tooLate(0, 5_000);
  tooLate(1, 5_001);
  tooLate(4_999, 9_000);
  expect(places()).toBe(4);
  tooLate(5_001, 10_001);
  expect(places()).toBe(2);
});

test("it grows by one when as many have come in time as may run, and starts again behind one that came too late", () => {
  const { places, inTime, tooLate } = openConcurrencyLimit(8);
  tooLate(0, 1);
  const seen = Array.from({ length: 4 + 5 + 6 }, () => {
    inTime();
    return places();
  });
  expect(seen).toEqual([4, 4, 4, 5, 5, 5, 5, 5, 6, 6, 6, 6, 6, 6, 7]);
  inTime();
  tooLate(2, 3);
  expect(places()).toBe(3);
  inTime();
  inTime();
  expect(places()).toBe(3);
  inTime();
  expect(places()).toBe(4);
});

test("one may always run, and never more than at first", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 50 }), fc.array(fc.boolean(), { maxLength: 200 }), (most, ends) => {
      const { places, inTime, tooLate } = openConcurrencyLimit(most);
      for (const [time, isGood] of ends.entries()) {
        if (isGood) inTime();
        else tooLate(time, time);
        expect(places()).toBeGreaterThanOrEqual(1);
        expect(places()).toBeLessThanOrEqual(most);
      }
    }),
  );
});
