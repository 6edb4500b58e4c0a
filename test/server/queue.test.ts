/** How long live work waits in the queue before it runs or is refused. The timers are fake. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { openQueue, type Queue } from "../../server/load/queue.ts";
import { DatabaseFault } from "../../shared/database/fault.ts";

const LIMIT = 5_000;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Slow work may use half of the `atOnce` places. */
const open = (atOnce: number, waiting = 20): Queue => openQueue({ atOnce, waiting, limit: LIMIT });

/** Takes so many milliseconds. Rejects as a query does when the signal aborts. */
type Run = (takes: number, signal: AbortSignal) => Promise<void>;

const alone: Run = (takes) => new Promise<void>((resolve) => void setTimeout(resolve, takes));

/** Resolves to the outcome, and to the milliseconds after which it was known. */
async function ask(queue: Queue, kind: string, takes: number, run = alone): Promise<string> {
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
});
