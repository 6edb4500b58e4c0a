/** How long a request that failed is left alone before it is sent again. */
import { expect, test } from "vitest";
import { pauseBefore } from "../../cli/deploy/exchange.ts";

const NOW = new Date("2026-01-20T15:30:00Z");

test("pauses double, up to 20 seconds", () => {
  const pauses = [0, 1, 2, 7, 8, 50].map((tries) => pauseBefore(tries, null, NOW));
  expect(pauses).toEqual([100, 200, 400, 12_800, 20_000, 20_000]);
});

test.each([
  ["3", 3_000],
  ["0", 100],
  ["Tue, 20 Jan 2026 15:30:05 GMT", 5_000],
  ["Tue, 20 Jan 2026 15:29:00 GMT", 100],
  ["86400", 60_000],
  ["soon", 100],
])("Retry-After: %s is honoured, as far as that is sensible", (retryAfter, pause) => {
  expect(pauseBefore(0, retryAfter, NOW)).toBe(pause);
});
