/** Checks the limit of slow queries that run at once: late queries halve it, queries that finish in time raise it. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { openConcurrencyLimit } from "../../server/load.ts";

test("the limit is halved once for all late queries that were already running at the cut", () => {
  const { places, tooLate } = openConcurrencyLimit(8);
  tooLate(0, 5_000);
  tooLate(1, 5_001);
  tooLate(4_999, 9_000);
  expect(places()).toBe(4);
  tooLate(5_001, 10_001);
  expect(places()).toBe(2);
});

test("the limit grows by one after as many timely queries as it allows; a late query restarts the count", () => {
  const { places, completedInTime, tooLate } = openConcurrencyLimit(8);
  tooLate(0, 1);
  const seen = Array.from({ length: 4 + 5 + 6 }, () => {
    completedInTime();
    return places();
  });
  expect(seen).toEqual([4, 4, 4, 5, 5, 5, 5, 5, 6, 6, 6, 6, 6, 6, 7]);
  completedInTime();
  tooLate(2, 3);
  expect(places()).toBe(3);
  completedInTime();
  completedInTime();
  expect(places()).toBe(3);
  completedInTime();
  expect(places()).toBe(4);
});

test("the limit never falls below one or rises above its initial value", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 50 }), fc.array(fc.boolean(), { maxLength: 200 }), (most, ends) => {
      const { places, completedInTime, tooLate } = openConcurrencyLimit(most);
      for (const [time, isGood] of ends.entries()) {
        if (isGood) completedInTime();
        else tooLate(time, time);
        expect(places()).toBeGreaterThanOrEqual(1);
        expect(places()).toBeLessThanOrEqual(most);
      }
    }),
  );
});
