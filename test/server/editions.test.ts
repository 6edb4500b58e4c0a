/** Editions are read in common, and never from before the question. */
import { expect, test } from "vitest";
import { openEditions } from "../../server/live/editions.ts";
import type { Session } from "../../shared/database/database.ts";

const stays = new AbortController().signal;

test("whoever asks, and however soon behind another's answer, is told of a reading that began later", async () => {
  let now = 0;
  const session: Pick<Session, "query"> = { query: async () => [[String(now)]] };
  const editions = openEditions({ ask: (_, run) => run(session), instead: () => null });
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

test("who asks while a reading hangs is told in spite of it, as are those who ask with him", async () => {
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
  const editions = openEditions({ ask: (_, run) => run({ query }), instead: () => null });
  const ask = () => editions("shop", ["goods"], Number.POSITIVE_INFINITY, stays);
  const first = ask();
  await begun;
  expect(await Promise.all([ask(), ask(), ask()])).toEqual(["2", "2", "2"]);
  expect(await ask()).toBe("3");
  release();
  expect(await first).toBe("1");
});
