/** When the database counts as unavailable, and what happens to the queries that wait for it. The timers are fake. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type CircuitBreaker, openCircuitBreaker } from "../../server/breaker.ts";
import { DatabaseFault } from "../../shared/database/errors.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const after = (milliseconds: number) => new Promise<void>((resolve) => void setTimeout(resolve, milliseconds));

/** Rejects as a probe or a query does when the database has gone. */
async function fail(): Promise<void> {
  throw new DatabaseFault("unavailable", "the connection was closed");
}

const failAfter = (milliseconds: number) => after(milliseconds).then(fail);

/** A database whose probes do what `probe` does at the moment. The times are those since it was opened. */
function openDatabase(probe: () => Promise<void>) {
  const start = performance.now();
  const now = () => performance.now() - start;
  const database = { probe, probedAt: [] as number[], awayAt: [] as number[], backAt: [] as number[] };
  const breaker = openCircuitBreaker({
    probe: () => {
      database.probedAt.push(now());
      return database.probe();
    },
    onAway: () => void database.awayAt.push(now()),
    onBack: () => void database.backAt.push(now()),
  });
  return { database, breaker, now };
}

/** Resolves to the outcome of the query, and when it was known. */
async function outcome(
  { breaker, now }: { readonly breaker: CircuitBreaker; readonly now: () => number },
  query: () => Promise<unknown>,
  controller = new AbortController(),
): Promise<string> {
  try {
    await breaker.run(controller, query);
    return `done ${now()}`;
  } catch (error) {
    return `${error instanceof DatabaseFault ? error.reason : error} ${now()}`;
  }
}

test("a database that falls silent is probed after half a second; when that fails, all queries fail at once", async () => {
  const opened = openDatabase(() => failAfter(2_000));
  const controllers = Array.from({ length: 5 }, () => new AbortController());
  const asked: Promise<string>[] = [];
  // Queries that keep coming do not delay the probe.
  for (const controller of controllers) {
    asked.push(outcome(opened, () => after(60_000), controller));
    await vi.advanceTimersByTimeAsync(400);
  }
  await vi.advanceTimersByTimeAsync(499);
  expect(opened.breaker.isAway()).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  expect(opened.breaker.isAway()).toBe(true);
  expect(opened.database.probedAt).toEqual([500]);
  expect(await Promise.all(asked)).toEqual(Array(5).fill("unavailable 2500"));
  for (const { signal } of controllers) expect(signal.reason).toMatchObject({ reason: "unavailable" });
  let reached = 0;
  expect(await outcome(opened, async () => reached++)).toBe("unavailable 2500");
  expect(reached).toBe(0);
});

test("an unavailable database is probed every 0.2 s, one probe at a time, and used when one succeeds", async () => {
  const opened = openDatabase(() => failAfter(100));
  const asked = Array.from({ length: 3 }, () => outcome(opened, fail));
  // This one is given up, and its result, which comes during a probe, changes nothing.
  asked.push(outcome(opened, () => after(350)));
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await Promise.all(asked)).toEqual([...Array(3).fill("unavailable 0"), "unavailable 100"]);
  expect(opened.database.probedAt).toEqual([0, 300, 600, 900]);
  opened.database.probe = () => after(100);
  await vi.advanceTimersByTimeAsync(299);
  expect(opened.breaker.isAway()).toBe(true);
  await vi.advanceTimersByTimeAsync(1);
  expect(opened.breaker.isAway()).toBe(false);
  expect(opened.database.awayAt).toEqual([100]);
  expect(opened.database.backAt).toEqual([1_300]);
  expect(await outcome(opened, async () => {})).toBe("done 1300");
});

test("a database that is slow is probed once in half a second, and keeps its queries while it answers that", async () => {
  const opened = openDatabase(() => after(10));
  const asked = outcome(opened, () => after(2_000));
  await vi.advanceTimersByTimeAsync(10_000);
  expect(await asked).toBe("done 2000");
  expect(opened.database.probedAt).toEqual([500, 1_010, 1_520]);
});

test("a database is silent for half a second only when it has answered no query for so long", async () => {
  const opened = openDatabase(fail);
  const long = outcome(opened, () => after(60_000));
  for (let count = 0; count < 10; count++) {
    void outcome(opened, () => after(300));
    await vi.advanceTimersByTimeAsync(300);
  }
  expect(opened.database.probedAt).toEqual([]);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(opened.database.probedAt[0]).toBe(3_500);
  expect(await long).toBe("unavailable 3500");
});

test("a database that had nothing to answer gets half a second for its next query, each time", async () => {
  const opened = openDatabase(fail);
  const asked = [outcome(opened, () => after(10))];
  await vi.advanceTimersByTimeAsync(450);
  asked.push(outcome(opened, () => after(450)));
  await vi.advanceTimersByTimeAsync(10_000);
  expect(await Promise.all(asked)).toEqual(["done 10", "done 900"]);
  expect(opened.database.probedAt).toEqual([]);
  const silent = outcome(opened, () => after(60_000));
  await vi.advanceTimersByTimeAsync(600);
  expect(await silent).toBe("unavailable 10950");
});

test.each([
  ["a query that it refuses", new Error("division by zero")],
  ["a query that is cancelled for its duration", new DatabaseFault("timeout", "the query took too long")],
])("%s shows that the database answers", async (_, error) => {
  const opened = openDatabase(fail);
  const asked = outcome(opened, () => after(700));
  const failed = after(400).then(() => outcome(opened, () => Promise.reject(error)));
  await vi.advanceTimersByTimeAsync(700);
  expect(await failed).not.toContain("unavailable");
  expect(await asked).toBe("done 700");
  expect(opened.database.probedAt).toEqual([]);
});

test("a query that was never sent does not make the database be probed", async () => {
  const opened = openDatabase(fail);
  const refused = new DatabaseFault("overloaded", "too many live queries are waiting");
  expect(await outcome(opened, () => Promise.reject(refused))).toBe("overloaded 0");
  expect(opened.database.probedAt).toEqual([]);
});

test("a failed probe proves nothing when a query was answered meanwhile: only new connections may be refused", async () => {
  const opened = openDatabase(() => failAfter(200));
  const short = outcome(opened, () => after(600));
  const long = outcome(opened, () => after(1_050));
  await vi.advanceTimersByTimeAsync(1_100);
  expect(await Promise.all([short, long])).toEqual(["done 600", "done 1050"]);
  expect(opened.database.awayAt).toEqual([]);
});

test.each([
  ["while a query waits", async () => {}, 100],
  ["during a probe that succeeds", () => after(100), 550],
  ["during a probe that fails", () => failAfter(100), 550],
  ["while the database is unavailable", fail, 600],
])("a server that is closed %s probes no more and reports nothing", async (_, probe, time) => {
  const opened = openDatabase(probe);
  void outcome(opened, () => new Promise(() => {}));
  await vi.advanceTimersByTimeAsync(time);
  const { length } = opened.database.probedAt;
  const told = [...opened.database.awayAt];
  opened.breaker.close();
  void outcome(opened, fail);
  await vi.advanceTimersByTimeAsync(100);
  expect(vi.getTimerCount()).toBe(0);
  expect(opened.database.probedAt).toHaveLength(length);
  expect(opened.database.awayAt).toEqual(told);
  expect(opened.database.backAt).toEqual([]);
});
