/** Editions are read in common, and never from before the question. */
import { expect, test } from "vitest";
import { openEditions } from "../../server/live/editions.ts";
import type { Session } from "../../shared/database/database.ts";

test("whoever asks, and however soon behind another's answer, is told of a reading that began later", async () => {
  let now = 0;
  const session: Pick<Session, "query"> = { query: async () => [[String(now)]] };
  const editions = openEditions({ ask: (_, run) => run(session), limit: 1_000, instead: () => null });
  const gone = new AbortController().signal;
  for (let wait = 0; wait < 40; wait++) {
    const before = editions("shop", ["goods"], gone);
    for (let turn = 0; turn < wait; turn++) await Promise.resolve();
    now++;
    expect(Number(await editions("shop", ["goods"], gone)), `${wait} steps behind`).toBe(now);
    await before;
  }
});
