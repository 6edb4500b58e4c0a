/** Aborting a query stops it in the database and affects no other query. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { afterAll, beforeAll, describe, expect, inject, test, vi } from "vitest";
import { openDatabase } from "../../cli/database.ts";
import type { Database } from "../../shared/database/database.ts";
import { DatabaseFault } from "../../shared/database/errors.ts";
import { openCancellations } from "../../shared/database/postgres/query.ts";
import { type Query, sql } from "../../shared/sql/query.ts";
import { type Activity, openActivity } from "../support/activity.ts";
import { openPlace } from "../support/cli.ts";
import { createDatabase, dropDatabase } from "../support/postgres.ts";
import { until } from "../support/until.ts";

const ONE = sql("SELECT 'one'");
const ENDLESS = sql("SELECT count(*)::text FROM generate_series(1, 1000000000000)");

/** The rows of a query, or the reason of its DatabaseFault. Throws any other error. */
async function outcomeOf(database: Database, query: Query, signal?: AbortSignal) {
  try {
    return await database.query(query, signal);
  } catch (error) {
    if (error instanceof DatabaseFault) return error.reason;
    throw error;
  }
}

test("a query that ends while it waits for its cancellation is not cancelled", async () => {
  vi.useFakeTimers();
  const awaitTurn = openCancellations();
  const runs = new Promise<void>(() => {});
  const [first, second] = [awaitTurn(runs), awaitTurn(Promise.resolve())];
  vi.useRealTimers();
  expect([await first, await second]).toEqual([true, false]);
});

test("queries that end before their cancellation do not delay the cancellation of others", async () => {
  const awaitTurn = openCancellations();
  const ended = Array.from({ length: 2_000 }, () => awaitTurn(Promise.resolve()));
  expect((await Promise.all(ended)).filter((isTurn) => isTurn)).toHaveLength(1);
  // If the others kept their turns, this one would come after 20 seconds.
  const turn = awaitTurn(new Promise(() => {}));
  expect(await Promise.race([turn, sleep(5_000, "nothing for 5 seconds", { ref: false })])).toBe(true);
});

test("queries that are aborted at the same moment are cancelled one after another", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  const awaitTurn = openCancellations();
  const had: number[] = [];
  const turns = [1, 2, 3].map((number) => awaitTurn(new Promise(() => {})).then(() => had.push(number)));
  vi.useRealTimers();
  const seen: number[][] = [];
  for (const turn of turns) {
    await turn;
    seen.push([...had]);
  }
  // No two turns came in the same iteration of the event loop.
  expect(seen).toEqual([[1], [1, 2], [1, 2, 3]]);
});

describe("on PostgreSQL", () => {
  let url: string;
  let database: Database;
  let activity: Activity;

  beforeAll(async () => {
    url = await createDatabase(inject("postgresUrl"));
    database = await openDatabase({ url, dataDir: "", queryTimeout: 10_000, connections: 4 });
    activity = await openActivity(url);
  });
  afterAll(async () => {
    await activity.close();
    await database.close();
    await dropDatabase(url);
  });

  test("an aborted query fails as a timeout and stops, and its connection is used again", async () => {
    const giveUp = new AbortController();
    const asked = outcomeOf(database, ENDLESS, giveUp.signal);
    await activity.runs(1);
    giveUp.abort();
    expect(await asked).toBe("timeout");
    await activity.runs(0);
    expect(await outcomeOf(database, ONE)).toEqual([["one"]]);
    expect(await activity.connections()).toBe(1);
  });

  test("queries that are aborted together all fail and stop, and no connection is lost", async () => {
    const giveUp = new AbortController();
    const asked = Array.from({ length: 4 }, () => outcomeOf(database, ENDLESS, giveUp.signal));
    await activity.runs(4);
    giveUp.abort();
    expect(await Promise.all(asked)).toEqual(["timeout", "timeout", "timeout", "timeout"]);
    await activity.runs(0);
    const again = Array.from({ length: 4 }, () => outcomeOf(database, ONE));
    expect(await Promise.all(again)).toEqual([[["one"]], [["one"]], [["one"]], [["one"]]]);
    expect(await activity.connections()).toBe(4);
  });

  test("a statement of a process that was killed stops, although it waits for a lock", async () => {
    const known = "SELECT FROM pg_settings WHERE name = 'client_connection_check_interval'";
    // PostgreSQL 13 cannot tell that a client has died.
    const stops = (await activity.query(known)).length === 1;
    const place = openPlace({ DATABASE_URL: url });
    try {
      await activity.query("SELECT pg_advisory_lock(7232278)");
      const migrating = place.start("migrate");
      await activity.runs(1);
      await migrating.stop("SIGKILL");
      if (stops) await activity.runs(0);
    } finally {
      await activity.query("SELECT pg_advisory_unlock_all()");
      await place.close();
    }
  });

  test("a query that is aborted before it begins fails as overloaded and does not run", async () => {
    expect(await outcomeOf(database, ENDLESS, AbortSignal.abort())).toBe("overloaded");
    await activity.runs(0);
  });

  test("aborting thousands of short queries at random moments cancels no other query", async () => {
    const outcomes = { kept: 0, givenUp: 0 };
    /** Runs for 2 ms, so that a late cancellation of an earlier query would hit it. */
    async function askWanted(number: string): Promise<void> {
      const query = sql("SELECT $1::text FROM pg_sleep(0.002)", [number]);
      expect(await outcomeOf(database, query, new AbortController().signal)).toEqual([[number]]);
    }
    // On a slow machine a query takes more turns of the event loop: who waits learns from the last outcome how many.
    let patience = 10;
    /** Ends at about the moment at which it is aborted. */
    async function askUnwanted(number: string): Promise<void> {
      const giveUp = new AbortController();
      const asked = outcomeOf(database, sql("SELECT $1::text", [number]), giveUp.signal);
      for (let turns = Math.floor(Math.random() * 2 * patience); turns > 0; turns--) await setImmediate();
      giveUp.abort();
      const outcome = await asked;
      const isKept = Array.isArray(outcome);
      if (isKept) expect(outcome).toEqual([[number]]);
      else expect(["timeout", "overloaded"]).toContain(outcome);
      outcomes[isKept ? "kept" : "givenUp"]++;
      patience = isKept ? Math.max(patience - 1, 1) : patience + 1;
    }
    // More clients than connections: a connection that is returned is lent again at once.
    const clients = Array.from({ length: 12 }, async (_, client) => {
      for (let number = 0; number < 250; number++) {
        await (Math.random() < 0.5 ? askWanted : askUnwanted)(`${client} ${number}`);
      }
    });
    await Promise.all(clients);
    expect(outcomes.kept).toBeGreaterThan(10);
    expect(outcomes.givenUp).toBeGreaterThan(100);
    expect(await activity.connections()).toBeLessThanOrEqual(4);
    await activity.runs(0);
  });

  test("a query that an administrator cancels fails as unavailable, one past its time limit as a timeout", async () => {
    const asked = outcomeOf(database, ENDLESS);
    await activity.runs(1);
    await activity.cancel();
    expect(await asked).toBe("unavailable");
    const hasty = await openDatabase({ url, dataDir: "", queryTimeout: 100, connections: 1 });
    expect(await outcomeOf(hasty, ENDLESS)).toBe("timeout");
    await hasty.close();
  });
});

describe("on an embedded database", () => {
  let folder: string;
  let host: Database;
  let guest: Database;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "precast-cancel-"));
    const options = { url: null, dataDir: folder, queryTimeout: null, connections: 1, share: true };
    host = await openDatabase(options);
    await host.execute("CREATE TABLE public.notes (text text); INSERT INTO public.notes VALUES ('kept')");
    guest = await openDatabase(options);
  });
  afterAll(async () => {
    await guest.close();
    await host.close();
    await rm(folder, { recursive: true, force: true });
  });

  const kept = () => host.query(sql("SELECT text FROM public.notes"));

  /** Calls `ask`, and resolves when its query was posted to the database thread. */
  async function begin(ask: () => Promise<unknown>): Promise<{ outcome: Promise<unknown>; thread: Worker }> {
    const posts = vi.spyOn(Worker.prototype, "postMessage");
    const outcome = ask();
    const isIt = ([job]: unknown[]) => (job as { query?: Query }).query?.text === ENDLESS.text;
    await until("the thread to have the query", () => posts.mock.calls.some(isIt));
    const thread = posts.mock.contexts[posts.mock.calls.findIndex(isIt)] as Worker;
    posts.mockRestore();
    return { outcome, thread };
  }

  test.each(["host", "guest"])("an aborted running query of the %s ends, and the data stays intact", async (who) => {
    const giveUp = new AbortController();
    const database = who === "host" ? host : guest;
    const { outcome } = await begin(() => outcomeOf(database, ENDLESS, giveUp.signal));
    const next = kept();
    giveUp.abort();
    expect(await outcome).toBe("timeout");
    expect(await next).toEqual([["kept"]]);
  });

  test.each(["host", "guest"])("an aborted waiting query of the %s does not begin", async (who) => {
    const [giveUp, giveUpFirst] = [new AbortController(), new AbortController()];
    const { outcome } = await begin(() => outcomeOf(host, ENDLESS, giveUpFirst.signal));
    const waiting = outcomeOf(who === "host" ? host : guest, ENDLESS, giveUp.signal);
    giveUp.abort();
    expect(await waiting).toBe("overloaded");
    giveUpFirst.abort();
    expect(await outcome).toBe("timeout");
  });

  test("a query fails as unavailable when its guest closes, and the host can query again", async () => {
    const leaving = await openDatabase({ url: null, dataDir: folder, queryTimeout: null, connections: 1 });
    const { outcome } = await begin(() => outcomeOf(leaving, ENDLESS));
    await leaving.close();
    expect(await outcome).toBe("unavailable");
    expect(await kept()).toEqual([["kept"]]);
  });

  test("a query that ends soon after it was aborted does not restart the database thread", async () => {
    await host.execute("CREATE TEMPORARY TABLE marks (text text)");
    const giveUp = new AbortController();
    const asked = outcomeOf(host, sql("SELECT count(*)::text FROM generate_series(1, 100000)"), giveUp.signal);
    const next = host.query(sql("SELECT count(*)::text FROM marks"));
    await Promise.resolve();
    giveUp.abort();
    expect(["timeout", "overloaded"]).toContain(await asked);
    // A new thread would not have the temporary table.
    expect(await next).toEqual([["0"]]);
  });

  test("when the database thread dies, its running query fails and the next one starts a new thread", async () => {
    const { outcome, thread } = await begin(() => outcomeOf(host, ENDLESS));
    const waiting = kept();
    await thread.terminate();
    expect(await outcome).toBe("unavailable");
    expect(await waiting).toEqual([["kept"]]);
    expect(await guest.query(sql("SELECT text FROM public.notes"))).toEqual([["kept"]]);
  });
});
