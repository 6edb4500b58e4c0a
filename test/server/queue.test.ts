/** How long live work waits in the queue before it runs or is refused. The timers are fake. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { openQueue, type Queue, type Weight } from "../../server/load.ts";
import { DatabaseFault } from "../../shared/database/errors.ts";

const LIMIT = 5_000;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Heavy work may use half of the `atOnce` permits. */
const open = (atOnce: number, waiting = 20): Queue => openQueue({ atOnce, waiting, limit: LIMIT });

/** Takes so many milliseconds. */
type Run = (takes: number) => Promise<void>;

const alone: Run = (takes) => new Promise<void>((resolve) => void setTimeout(resolve, takes));

/** Resolves to the outcome, and to the milliseconds after which it was known. */
async function ask(queue: Queue, weight: Weight, takes: number, run = alone): Promise<string> {
  const since = performance.now();
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(), LIMIT);
  try {
    await queue.run(limit.signal, weight, () => run(takes));
    return `done ${performance.now() - since}`;
  } catch (error) {
    return `${(error as DatabaseFault).reason} ${performance.now() - since}`;
  } finally {
    clearTimeout(timer);
  }
}

/** Asks for work that never ends by itself. It is aborted after so many milliseconds, as when its client goes. */
async function hang(queue: Queue, weight: Weight, milliseconds = LIMIT): Promise<void> {
  const controller = new AbortController();
  const { signal } = controller;
  const run = () =>
    new Promise<never>((_, reject) => {
      signal.addEventListener("abort", () => reject(new DatabaseFault("timeout", "the query was cancelled")));
    });
  setTimeout(() => controller.abort(), milliseconds);
  await queue.run(signal, weight, run).catch(() => {});
}

async function outcomes(asked: readonly Promise<string>[]): Promise<string[]> {
  await vi.advanceTimersByTimeAsync(LIMIT);
  return Promise.all(asked);
}

describe("queued work", () => {
  test("waits up to the limit of waiting queries, and beyond it is refused at once", async () => {
    const queue = open(1, 2);
    const asked: Promise<string>[] = [];
    const fullAfter: boolean[] = [];
    for (let count = 0; count < 4; count++) {
      asked.push(ask(queue, "light", 100));
      fullAfter.push(queue.isFull("light"));
    }
    expect(fullAfter).toEqual([false, false, true, true]);
    expect(await outcomes(asked)).toEqual(["done 100", "done 200", "done 300", "overloaded 0"]);
  });

  test.each<Weight>(["light", "heavy"])("that is %s is refused after half of the time limit", async (weight) => {
    const queue = open(1);
    const asked = Array.from({ length: 2 }, () => ask(queue, weight, 4_000));
    expect(await outcomes(asked)).toEqual(["done 4000", "overloaded 2500"]);
  });

  test("is not refused when the durations vary and all of it finishes in time", async () => {
    const queue = open(10, 100);
    const clients = Array.from({ length: 20 }, async (_, client) => {
      const ended: string[] = [];
      for (let turn = 0; turn < 10; turn++)
        ended.push(await ask(queue, "heavy", (client + turn) % 5 === 0 ? 1_800 : 300));
      return ended;
    });
    await vi.advanceTimersByTimeAsync(40_000);
    const all = (await Promise.all(clients)).flat();
    expect(all.filter((outcome) => !outcome.startsWith("done"))).toEqual([]);
  });

  test("begins with a free permit although none may wait", async () => {
    const queue = open(1, 0);
    expect(queue.isFull("heavy")).toBe(false);
    expect(await outcomes([ask(queue, "heavy", 100), ask(queue, "heavy", 100)])).toEqual(["done 100", "overloaded 0"]);
  });

  test("does not begin for a client that has gone, and leaves the queue when its client goes", async () => {
    const queue = open(1);
    await expect(queue.run(AbortSignal.abort(), "heavy", () => alone(0))).rejects.toMatchObject({
      reason: "overloaded",
    });
    const first = ask(queue, "heavy", 2_000);
    void hang(queue, "heavy", 1_000);
    const last = ask(queue, "heavy", 100);
    await vi.advanceTimersByTimeAsync(999);
    expect(queue.counts()).toEqual({ running: 1, waiting: 2 });
    await vi.advanceTimersByTimeAsync(1);
    expect(queue.counts()).toEqual({ running: 1, waiting: 1 });
    expect(await outcomes([first, last])).toEqual(["done 2000", "done 2100"]);
  });

  test("returns its permit when it fails", async () => {
    const queue = open(1);
    const fail = () => alone(100).then(() => Promise.reject(new DatabaseFault("unavailable", "the connection closed")));
    expect(await outcomes([ask(queue, "heavy", 0, fail), ask(queue, "heavy", 100)])).toEqual([
      "unavailable 100",
      "done 200",
    ]);
  });
});

describe("heavy work", () => {
  test("waits in at most half of the queue", async () => {
    const queue = open(2, 4);
    const asked = Array.from({ length: 4 }, () => ask(queue, "heavy", 300));
    expect(queue.isFull("heavy")).toBe(true);
    expect(queue.isFull("light")).toBe(false);
    expect(await outcomes(asked)).toEqual(["done 300", "done 600", "done 900", "overloaded 0"]);
  });

  test("gets half of the permits, however long it takes, and leaves the others to light work", async () => {
    const queue = open(6);
    for (let count = 0; count < 4; count++) void hang(queue, "heavy");
    expect(queue.counts()).toEqual({ running: 3, waiting: 1 });
    const light = Array.from({ length: 6 }, () => ask(queue, "light", 100));
    expect(await outcomes(light)).toEqual([...Array(3).fill("done 100"), ...Array(3).fill("done 200")]);
  });

  test("takes turns with light work when there is one permit", async () => {
    const queue = open(1);
    const asked = (["light", "heavy", "light", "heavy"] as const).map((weight) => ask(queue, weight, 100));
    expect(await outcomes(asked)).toEqual(["done 100", "done 200", "done 300", "done 400"]);
  });

  test("lets light work pass that came later only while it may not begin itself", async () => {
    const queue = open(2);
    const asked = (["heavy", "heavy", "light", "light"] as const).map((weight) => ask(queue, weight, 100));
    expect(await outcomes(asked)).toEqual(["done 100", "done 200", "done 100", "done 200"]);
  });
});

test("light work gets every permit, also while the database is slow", async () => {
  const queue = open(4);
  for (let count = 0; count < 3; count++) void hang(queue, "light");
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await outcomes([ask(queue, "light", 100)])).toEqual(["done 100"]);
});
