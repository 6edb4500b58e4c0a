/** How long live work waits in the queue before it runs or is refused. The timers are fake. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type Kind, openQueue, type Queue } from "../../server/load.ts";
import { DatabaseFault } from "../../shared/database/fault.ts";

const LIMIT = 5_000;
const stays = new AbortController().signal;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Slow work may use half of the `atOnce` places. */
const open = (atOnce: number, waiting = 20): Queue => openQueue({ atOnce, waiting, limit: LIMIT });

/** Takes so many milliseconds. Rejects as a query does when the signal aborts. */
type Run = (takes: number, signal: AbortSignal) => Promise<void>;

const alone: Run = (takes) => new Promise<void>((resolve) => void setTimeout(resolve, takes));

/** Resolves to the outcome, and to the milliseconds after which it was known. */
async function ask(queue: Queue, kind: Kind, takes: number, run = alone): Promise<string> {
  const since = performance.now();
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(), LIMIT);
  try {
    await queue.run(limit.signal, kind, () => run(takes, limit.signal));
    return `done ${performance.now() - since}`;
  } catch (error) {
    return `${(error as DatabaseFault).reason} ${performance.now() - since}`;
  } finally {
    clearTimeout(timer);
  }
}

/** Asks for work that never ends by itself. It is aborted after so many milliseconds, for this reason. */
async function hang(queue: Queue, kind: Kind, milliseconds = LIMIT, reason?: DatabaseFault): Promise<void> {
  const controller = new AbortController();
  const { signal } = controller;
  const run = () =>
    new Promise<never>((_, reject) => {
      signal.addEventListener("abort", () => reject(new DatabaseFault("timeout", "the query was cancelled")));
    });
  setTimeout(() => controller.abort(reason), milliseconds);
  await queue.run(signal, kind, run).catch(() => {});
}

/** Work on a machine whose processors all running work shares equally. `takes` is in milliseconds of one processor. */
function machine(processors: number): Run {
  const running = new Map<() => void, number>();
  let since = performance.now();
  let timer: NodeJS.Timeout | undefined;

  function goOn(): void {
    const each = (performance.now() - since) * Math.min(1, processors / running.size);
    since = performance.now();
    for (const [end, left] of running) {
      if (left - each > 1e-6) running.set(end, left - each);
      else running.delete(end) && end();
    }
    clearTimeout(timer);
    if (running.size === 0) return;
    const next = Math.min(...running.values()) / Math.min(1, processors / running.size);
    timer = setTimeout(goOn, Math.ceil(next));
  }

  return (cost, signal) => {
    return new Promise((resolve, reject) => {
      goOn();
      running.set(resolve, cost);
      goOn();
      const giveUp = () => {
        goOn();
        running.delete(resolve);
        reject(new DatabaseFault("timeout", "the query took too long"));
        goOn();
      };
      signal.addEventListener("abort", giveUp, { once: true });
    });
  };
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
      asked.push(ask(queue, "search", 100));
      fullAfter.push(queue.isFull("search"));
    }
    expect(fullAfter).toEqual([false, false, true, true]);
    expect(await outcomes(asked)).toEqual(["done 100", "done 200", "done 300", "overloaded 0"]);
  });

  test("of a kind known to be slow runs one at a time, and is refused at once if it would be too late", async () => {
    const queue = open(2);
    await outcomes([ask(queue, "search", 1_200)]);
    const asked = Array.from({ length: 5 }, () => ask(queue, "search", 1_200));
    expect(await outcomes(asked)).toEqual(["done 1200", "done 2400", "done 3600", "done 4800", "overloaded 0"]);
  });

  test("of a kind with unknown duration is refused after half of the time limit", async () => {
    const queue = open(2);
    const asked = Array.from({ length: 3 }, () => ask(queue, "search", 4_000));
    expect(await outcomes(asked)).toEqual(["done 4000", "done 4000", "overloaded 2500"]);
  });

  test("is not refused when one query of its kind takes long and the others do not", async () => {
    const queue = open(4);
    const long = ask(queue, "search", 4_000);
    await vi.advanceTimersByTimeAsync(3_000);
    const short = ask(queue, "search", 100);
    await vi.advanceTimersByTimeAsync(50);
    const asked = Array.from({ length: 5 }, () => ask(queue, "search", 100));
    expect(await outcomes([long, short])).toEqual(["done 4000", "done 100"]);
    expect(await Promise.all(asked)).toEqual(["done 150", "done 150", "done 150", "done 250", "done 250"]);
  });

  test("is not refused when the durations of its kind vary and all of it finishes in time", async () => {
    const queue = open(10, 100);
    const clients = Array.from({ length: 20 }, async (_, client) => {
      const ended: string[] = [];
      for (let turn = 0; turn < 10; turn++)
        ended.push(await ask(queue, "search", (client + turn) % 5 === 0 ? 1_800 : 300));
      return ended;
    });
    await vi.advanceTimersByTimeAsync(40_000);
    const all = (await Promise.all(clients)).flat();
    expect(all.filter((outcome) => !outcome.startsWith("done"))).toEqual([]);
  });

  test("of a kind with unknown duration does not run so much at once that all of it is too late", async () => {
    const queue = open(10);
    const run = machine(2);
    const asked = Array.from({ length: 20 }, () => ask(queue, "search", 1_100, run));
    const ended = await outcomes(asked);
    expect(ended.filter((outcome) => outcome.startsWith("done"))).toHaveLength(5);
    expect(ended.filter((outcome) => outcome.startsWith("timeout"))).toEqual([]);
  });

  test("is not refused when its kind suddenly takes longer than ever and all of it finishes in time", async () => {
    const queue = open(10, 200);
    const run = machine(2);
    await outcomes([ask(queue, "search", 240, run)]);
    const first = Array.from({ length: 20 }, () => ask(queue, "search", 240, run));
    await vi.advanceTimersByTimeAsync(1_100);
    const late = Array.from({ length: 4 }, () => ask(queue, "search", 240, run));
    const ended = await outcomes([...first, ...late]);
    expect(ended.filter((outcome) => !outcome.startsWith("done"))).toEqual([]);
  });

  test.each([
    [10, 1, 400],
    [20, 1, 200],
    [20, 2, 400],
    [40, 4, 400],
    [40, 8, 600],
  ])(
    "is not refused when %i concurrent clients ask %i processors for %i ms of work each and all finish in time",
    async (count, processors, cost) => {
      const queue = open(10, 200);
      const run = machine(processors);
      const clients = Array.from({ length: count }, async () => {
        const ended: string[] = [];
        for (let turn = 0; turn < 10; turn++) ended.push(await ask(queue, "search", cost, run));
        return ended;
      });
      await vi.advanceTimersByTimeAsync(60_000);
      const all = (await Promise.all(clients)).flat();
      expect(all.filter((outcome) => !outcome.startsWith("done"))).toEqual([]);
    },
  );

  test("begins in a free place although none may wait", async () => {
    const queue = open(1, 0);
    expect(queue.isFull("search")).toBe(false);
    expect(await outcomes([ask(queue, "search", 100), ask(queue, "search", 100)])).toEqual([
      "done 100",
      "overloaded 0",
    ]);
  });

  test("does not begin for a client that has gone, and leaves the queue when its client goes", async () => {
    const queue = open(1);
    await expect(queue.run(AbortSignal.abort(), "search", () => alone(0, stays))).rejects.toMatchObject({
      reason: "overloaded",
    });
    const first = ask(queue, "search", 2_000);
    void hang(queue, "search", 1_000);
    const last = ask(queue, "search", 100);
    await vi.advanceTimersByTimeAsync(999);
    expect(queue.counts()).toEqual({ running: 1, waiting: 2 });
    await vi.advanceTimersByTimeAsync(1);
    expect(queue.counts()).toEqual({ running: 1, waiting: 1 });
    expect(await outcomes([first, last])).toEqual(["done 2000", "done 2100"]);
  });

  test("of a slow kind waits in at most half of the queue", async () => {
    const queue = open(2, 4);
    await outcomes([ask(queue, "search", 300)]);
    const asked = Array.from({ length: 4 }, () => ask(queue, "search", 300));
    expect(queue.isFull("search")).toBe(true);
    expect(queue.isFull("list")).toBe(false);
    expect(await outcomes(asked)).toEqual(["done 300", "done 600", "done 900", "overloaded 0"]);
  });

  test("of several slow kinds waits in at most half of the queue together", async () => {
    const queue = open(2, 4);
    const kinds = ["search", "list", "sort"];
    for (const kind of kinds) await outcomes([ask(queue, kind, 300)]);
    const asked = [...kinds, ...kinds].map((kind) => ask(queue, kind, 300));
    expect(queue.isFull("entry")).toBe(false);
    expect(queue.counts()).toEqual({ running: 1, waiting: 2 });
    expect((await outcomes(asked)).filter((outcome) => outcome === "overloaded 0")).toHaveLength(3);
  });

  test("of a slow kind gets half of the places, half of that when it is too late, and one more when it is not", async () => {
    const queue = open(8);
    await outcomes([ask(queue, "search", 1_000)]);
    for (let count = 0; count < 4; count++) void hang(queue, "search");
    expect((await outcomes([ask(queue, "search", 300)]))[0]).toMatch(/^overloaded/);
    // Fast work changes nothing about that.
    await outcomes([ask(queue, "list", 100), ask(queue, "list", 100)]);
    const lists = [ask(queue, "list", 100), ask(queue, "list", 100)];
    const asked = Array.from({ length: 3 }, () => ask(queue, "search", 300));
    expect(await outcomes(asked)).toEqual(["done 300", "done 300", "overloaded 0"]);
    expect(await Promise.all(lists)).toEqual(["done 100", "done 100"]);
    const next = Array.from({ length: 4 }, () => ask(queue, "search", 300));
    expect(await outcomes(next)).toEqual(["done 300", "done 300", "done 300", "done 600"]);
  });

  test.each<[string, number, DatabaseFault?]>([
    ["its client has soon left", 100],
    ["the database has become unavailable", 4_000, new DatabaseFault("unavailable", "the database is unavailable")],
  ])("of a slow kind keeps its places and its duration when %s", async (_, milliseconds, reason) => {
    const queue = open(8);
    await outcomes([ask(queue, "search", 1_000)]);
    for (let count = 0; count < 4; count++) void hang(queue, "search", milliseconds, reason);
    await vi.advanceTimersByTimeAsync(LIMIT);
    const asked = Array.from({ length: 12 }, () => ask(queue, "search", 1_000));
    expect(queue.counts()).toEqual({ running: 4, waiting: 8 });
    expect(await outcomes(asked)).toEqual(["done 1000", "done 2000", "done 3000"].flatMap((one) => Array(4).fill(one)));
  });

  test.each([
    ["fails", new Error("division by zero")],
    ["loses its connection", new DatabaseFault("unavailable", "the connection was closed")],
  ])("that %s says nothing about the duration of its kind", async (_, error) => {
    const queue = open(4);
    const fail = () => alone(3_000, stays).then(() => Promise.reject(error));
    await outcomes([ask(queue, "search", 3_000, fail)]);
    const asked = Array.from({ length: 4 }, () => ask(queue, "search", 1_000));
    expect(await outcomes(asked)).toEqual(["done 1000", "done 1000", "done 2000", "done 2000"]);
  });

  test("of a fast kind leaves places to other kinds once all of it that runs takes long", async () => {
    const queue = open(6);
    await outcomes([ask(queue, "list", 100), ask(queue, "search", 100)]);
    const fast = Array.from({ length: 6 }, () => ask(queue, "list", 100));
    expect(await outcomes(fast)).toEqual(Array(6).fill("done 100"));
    for (let count = 0; count < 3; count++) void hang(queue, "search");
    await vi.advanceTimersByTimeAsync(300);
    void hang(queue, "search");
    expect(queue.counts()).toEqual({ running: 3, waiting: 1 });
    const lists = Array.from({ length: 3 }, () => ask(queue, "list", 100));
    expect(await outcomes(lists)).toEqual(Array(3).fill("done 100"));
  });

  test("that never takes long gets every place, also while the database is slow", async () => {
    const queue = open(4);
    for (let count = 0; count < 3; count++) void hang(queue, null);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await outcomes([ask(queue, null, 100)])).toEqual(["done 100"]);
  });

  test("of a kind that turns out to be faster waits longer, but only as long as it could still end in time", async () => {
    const queue = open(10);
    await outcomes([ask(queue, "search", 3_000)]);
    void ask(queue, "search", 400);
    for (let count = 0; count < 5; count++) void hang(queue, "search");
    const asked = ask(queue, "search", 400);
    await vi.advanceTimersByTimeAsync(2_100);
    expect(queue.counts()).toEqual({ running: 5, waiting: 1 });
    expect(await outcomes([asked])).toEqual(["overloaded 3300"]);
  });

  test("is not refused because more of its kind ran at once, and so took longer, than will from now on", async () => {
    const queue = open(10, 200);
    const run = machine(2);
    await outcomes([ask(queue, "search", 100, run)]);
    const first = Array.from({ length: 10 }, () => ask(queue, "search", 800, run));
    expect(await outcomes(first)).toEqual(Array(10).fill("done 4000"));
    const next = Array.from({ length: 10 }, () => ask(queue, "search", 800, run));
    expect(await outcomes(next)).toEqual([...Array(5).fill("done 2000"), ...Array(5).fill("done 4000")]);
  });
});
