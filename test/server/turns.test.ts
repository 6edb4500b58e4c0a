/** Requests that are not answered from memory begin a few at a time, so that a burst of them delays no others. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { openFairScheduling, type YieldFairly } from "../../server/app.ts";

/** Asks for so many turns at once; resolves to how many are granted in each following turn of the event loop. */
async function takenByTurn(yieldFairly: YieldFairly, count: number): Promise<number[]> {
  let had = 0;
  for (let index = 0; index < count; index++) void yieldFairly().then(() => had++);
  const taken: number[] = [];
  while (had < count) {
    const before = had;
    await nextTurn();
    taken.push(had - before);
  }
  return taken;
}

test("work that is already pending runs before work that waits for its turn", async () => {
  const yieldFairly = openFairScheduling(() => 3);
  const order: string[] = [];
  const waits = yieldFairly().then(() => order.push("has waited"));
  await Promise.resolve().then(() => order.push("was there"));
  await waits;
  expect(order).toEqual(["was there", "has waited"]);
});

test("in each turn of the event loop, at most as many begin as the limit allows", async () => {
  const yieldFairly = openFairScheduling(() => 3);
  expect(await takenByTurn(yieldFairly, 3)).toEqual([3]);
  await nextTurn();
  expect(await takenByTurn(yieldFairly, 10)).toEqual([3, 3, 3, 1]);
});

test("turns are granted in the order in which they were asked for", async () => {
  const yieldFairly = openFairScheduling(() => 2);
  const order: number[] = [];
  const take = (name: number) => yieldFairly().then(() => order.push(name));
  const first = [1, 2, 3, 4, 5].map(take);
  await nextTurn();
  await Promise.all([...first, ...[6, 7].map(take)]);
  expect(order).toEqual([1, 2, 3, 4, 5, 6, 7]);
});

test("the limit may change between two turns of the event loop", async () => {
  let most = 4;
  const yieldFairly = openFairScheduling(() => most);
  const taken = takenByTurn(yieldFairly, 9);
  await nextTurn();
  most = 2;
  expect(await taken).toEqual([4, 2, 2, 1]);
});
