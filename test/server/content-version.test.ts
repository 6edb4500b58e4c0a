/**
 * Checks reads of content versions: requests share them, and none gets a version whose
 * read began before the request.
 */
import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { openContentVersions } from "../../server/live/cache.ts";
import type { Session } from "../../shared/database/database.ts";

const LIMIT = 5_000;
const stays = new AbortController().signal;

test("a request gets an edition that was read after it asked, however closely it follows another request", async () => {
  let now = 0;
  const session: Pick<Session, "query"> = { query: async () => [[String(now)]] };
  const editions = openContentVersions({ ask: (_, run) => run(session), instead: () => null, limit: LIMIT });
  for (let wait = 0; wait < 40; wait++) {
    const before = editions("shop", ["goods"], Number.POSITIVE_INFINITY, stays);
    for (let turn = 0; turn < wait; turn++) await Promise.resolve();
    now++;
    expect(Number(await editions("shop", ["goods"], Number.POSITIVE_INFINITY, stays)), `${wait} steps behind`).toBe(
      now,
    );
    await before;
  }
});

test("requests that arrive while a read hangs share a second read and do not wait for the first", async () => {
  let [begin, release] = [() => {}, () => {}];
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const hung = new Promise<void>((resolve) => {
    release = resolve;
  });
  let readings = 0;
  const query = async () => {
    const number = ++readings;
    begin();
    if (number === 1) await hung;
    return [[String(number)]];
  };
  const editions = openContentVersions({ ask: (_, run) => run({ query }), instead: () => null, limit: LIMIT });
  const ask = () => editions("shop", ["goods"], Number.POSITIVE_INFINITY, stays);
  const first = ask();
  await begun;
  expect(await Promise.all([ask(), ask(), ask()])).toEqual(["2", "2", "2"]);
  expect(await ask()).toBe("3");
  release();
  expect(await first).toBe("1");
});

test("reads follow one another while they take no longer than usual, also behind one that fails", async () => {
  let [running, most, readings] = [0, 0, 0];
  const query = async () => {
    const number = ++readings;
    most = Math.max(most, ++running);
    for (let turn = 0; turn < 3; turn++) await setImmediate();
    running--;
    if (number === 1) throw new Error("the connection was closed");
    return [[String(number)]];
  };
  const editions = openContentVersions({ ask: (_, run) => run({ query }), instead: () => null, limit: LIMIT });
  const asked: Promise<unknown>[] = [];
  for (let turn = 0; turn < 12; turn++) {
    asked.push(editions("shop", ["goods"], Number.POSITIVE_INFINITY, stays).catch((error) => error.message));
    await setImmediate();
  }
  const [first, ...others] = await Promise.all(asked);
  expect(first).toBe("the connection was closed");
  expect(others.filter((one) => !/^\d+$/.test(String(one)))).toEqual([]);
  expect(most).toBe(1);
  expect(readings).toBeLessThan(asked.length);
});

test("a request does not get the end of the time that another request has left", async () => {
  const given: number[] = [];
  const editions = openContentVersions({
    ask: (_, run, left) => {
      given.push(left);
      return run({ query: async () => [["1"]] });
    },
    instead: () => null,
    limit: LIMIT,
  });
  const now = performance.now();
  await Promise.all([200, 5_000].map((left) => editions("shop", ["goods"], now + left, stays)));
  expect(Math.max(...given)).toBeGreaterThan(4_000);
});
