/** Timeouts of requests, and pauses before retries. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { exchange, pauseBefore } from "../../cli/deploy/http.ts";

const NOW = new Date("2026-01-20T15:30:00Z");

test("pauses between retries double, up to 20 seconds", () => {
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
])("Retry-After: %s gives a pause between the usual backoff and one minute", (retryAfter, pause) => {
  expect(pauseBefore(0, retryAfter, NOW)).toBe(pause);
});

test("a response may exceed the timeout when its Content-Length says that it is large", async () => {
  const body = Buffer.alloc(256_000, "x");
  const slow = createServer((_, response) => {
    response.writeHead(200, { "Content-Length": body.length }).write(body.subarray(1));
    setTimeout(() => response.end(body.subarray(0, 1)), 2_000);
  });
  await new Promise<void>((resolve) => slow.listen(0, "127.0.0.1", resolve));
  const url = new URL(`http://127.0.0.1:${(slow.address() as AddressInfo).port}`);
  const got = await exchange(
    () => ({ method: "GET", url, headers: {} }),
    (sent) => ({ done: sent.body.length }),
    "the store",
    { timeout: 1, retries: 0, now: () => NOW },
  );
  expect(got).toBe(body.length);
  slow.close();
});
