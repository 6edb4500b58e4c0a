/**
 * While the database is down, slow or busy, free answers are unchanged and live requests are refused. Afterwards the
 * server recovers by itself.
 */
import { renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { openDatabase } from "../../cli/database.ts";
import type { Database } from "../../shared/database/database.ts";
import { sql } from "../../shared/sql/query.ts";
import { type Activity, openActivity } from "../support/activity.ts";
import { openPlace } from "../support/cli.ts";
import { COUNTED, FREE, GOODS, KEY } from "../support/goods.ts";
import { startPostgres, type TestServer } from "../support/postgres.ts";
import { rowsOf } from "../support/replica-set.ts";
import {
  type ApiServer,
  buildSite,
  loadBundles,
  openApiServer,
  openStore,
  type ReceivedAnswer,
  type Store,
} from "../support/site.ts";
import { openTcpProxy, type TcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

function timeless({ status, headers: { date: _, "x-request-id": __, ...headers }, text }: ReceivedAnswer) {
  return { status, headers, text };
}

async function answersOf(api: ApiServer, targets: readonly string[]) {
  const answers = await Promise.all(targets.map((target) => api.get(target, { appKey: KEY })));
  return answers.map(timeless);
}

/** Repeats the request until it gets this status. The test's timeout ends a wait in vain. */
async function untilStatus(api: ApiServer, target: string, status: number): Promise<ReceivedAnswer> {
  for (;;) {
    const got = await api.get(target, { appKey: KEY });
    if (got.status === status) return got;
  }
}

describe("while the database is down", () => {
  let server: TestServer;
  let store: Store;
  let api: ApiServer;

  beforeAll(async () => {
    server = await startPostgres();
    store = await openStore("postgres", { queryTimeout: 5_000, connections: 3, queue: 10 }, server.url("postgres"));
    await loadBundles(store, [GOODS]);
    await buildSite(store);
    api = await openApiServer(store);
  });
  afterAll(async () => {
    await api.close();
    await store.close();
    await server.remove();
  });

  async function allowConnections(allowed: boolean): Promise<void> {
    const name = new URL(store.url as string).pathname.slice(1);
    const admin = server.url("postgres");
    await rowsOf(admin, `ALTER DATABASE "${name}" ALLOW_CONNECTIONS ${allowed}`);
    await rowsOf(admin, `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '${name}'`);
  }

  test.each([
    ["stopped", () => server.stop("fast"), () => server.start()],
    ["crashed", () => server.stop("immediate"), () => server.start()],
    ["killed", () => server.kill(), () => server.start()],
    ["frozen", async () => server.pause(), async () => server.resume()],
    ["closed to all connections", () => allowConnections(false), () => allowConnections(true)],
  ])("database %s: free answers are unchanged, counted requests get 503 until it is back", async (_, away, back) => {
    const before = await answersOf(api, FREE);
    const stranger = await api.get("/api/v1/goods", { appKey: "nobody" });
    expect(stranger.status).toBe(401);
    await away();

    expect(await answersOf(api, FREE)).toEqual(before);
    expect((await api.get("/api/v1/goods", { appKey: "nobody" })).status).toBe(401);
    for (const got of await Promise.all(COUNTED.map((target) => api.get(target, { appKey: KEY })))) {
      expect(got.status).toBe(503);
      expect(got.json.error.code).toBe("DATABASE_UNAVAILABLE");
      expect(got.headers).toMatchObject({
        "retry-after": "1",
        "x-request-counted": "true",
        "cache-control": "no-store",
      });
    }

    await back();
    for (const target of COUNTED) expect((await untilStatus(api, target, 200)).status).toBe(200);
  });

  test("the log tells once that it is down and once that it is back, and a metric shows it meanwhile", async () => {
    const place = openPlace({ DATABASE_URL: store.url as string });
    onTestFinished(place.close);
    const serving = await place.serve("--admin-port 0");
    await serving.printed(/Health and metrics: \S+\n/);
    const admin = /Health and metrics: (\S+)/.exec(serving.output().stdout)?.[1] ?? "";
    const isUp = async () => /^precast_database_up (\d)$/m.exec(await (await fetch(`${admin}/metrics`)).text())?.[1];
    const asked = () => Promise.all(COUNTED.map((target) => serving.get(target, { appKey: KEY })));
    const statuses = async () => (await asked()).map(({ status }) => status);
    expect([await statuses(), await isUp()]).toEqual([[200, 200, 200], "1"]);

    await server.stop("fast");
    for (let time = 0; time < 3; time++) expect(await statuses()).toEqual([503, 503, 503]);
    await serving.printed(/does not answer/);
    expect(await isUp()).toBe("0");
    await server.start();
    await serving.printed(/answers again/);
    expect([await statuses(), await isUp()]).toEqual([[200, 200, 200], "1"]);

    const { stderr } = await serving.stop();
    const lines = stderr.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line)]));
    expect(lines.filter(({ level }) => level === "warn").map(({ msg }) => msg)).toEqual([
      expect.stringMatching(
        /^The database does not answer \(.+\)\. Live requests get 503 until it is available again\.$/,
      ),
      "The database answers again.",
    ]);
  });
});

describe("while the database is slow", () => {
  let store: Store;
  let api: ApiServer;
  let activity: Activity;

  beforeAll(async () => {
    store = await openStore("postgres", { queryTimeout: 300, connections: 1, queue: 1 });
    await loadBundles(store, [GOODS]);
    await buildSite(store);
    // Without a cache, each request runs a query.
    api = await openApiServer(store, join(store.folder, "out"), { memory: 0 });
    activity = await openActivity(store.url as string);
  });
  afterAll(async () => {
    await activity.close();
    await api.close();
    await store.close();
  });

  /** Makes every live query wait for a lock that another client holds. */
  async function whileLocked<T>(run: () => Promise<T>): Promise<T> {
    await activity.lock();
    return run().finally(activity.unlock);
  }

  test("a live query that exceeds the time limit gets 504 and is cancelled in the database", async () => {
    const got = await whileLocked(async () => {
      const answer = await api.get("/api/v1/goods?per_page=1", { appKey: KEY });
      await activity.runs(0);
      return answer;
    });
    expect(got.status).toBe(504);
    expect(got.json.error.code).toBe("QUERY_TIMEOUT");
    expect(got.headers["cache-control"]).toBe("no-store");
    expect((await api.get("/api/v1/goods?per_page=1", { appKey: KEY })).status).toBe(200);
  });

  test("live requests beyond the queue limit get 503 at once, and free requests are answered meanwhile", async () => {
    await whileLocked(async () => {
      const codes: string[] = [];
      const asked = [1, 2, 3, 4].map(async (size) => {
        const got = await api.get(`/api/v1/goods?per_page=${size}`, { appKey: KEY });
        codes.push(got.json.error.code);
        return got;
      });
      expect((await api.get("/api/v1/goods", { appKey: KEY })).status).toBe(200);
      const answers = await Promise.all(asked);
      // Two at once, then the queued one, which would have too little time left, and last the running one.
      expect(codes).toEqual(["OVERLOADED", "OVERLOADED", "OVERLOADED", "QUERY_TIMEOUT"]);
      const refused = answers.find((got) => got.json.error.code === "OVERLOADED");
      expect(refused?.headers["retry-after"]).toBe("1");
    });
  });
});

test("the time that a request waits for the content types counts towards its time limit", async () => {
  const store = await openStore("postgres", { queryTimeout: 3_000 });
  await loadBundles(store, [GOODS]);
  await buildSite(store);
  const api = await openApiServer(store);
  const treeless = await openApiServer(store, join(store.folder, "nowhere"), { memory: 0 });
  const entries = await openActivity(store.url as string);
  const types = await openActivity(store.url as string);
  const ended: string[] = [];
  const ask = async (name: string, asked: ApiServer) => {
    expect((await asked.get("/api/v1/goods?per_page=1", { appKey: KEY })).status).toBe(504);
    ended.push(name);
  };
  await entries.lock();
  await types.lock("precast.content_types");
  const first = ask("came first, without a tree", treeless);
  const waitsForLong =
    "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query_start < now() - interval '1 s'";
  await until("it to wait for a second", async () => (await types.query(waitsForLong)).length > 0);
  const second = ask("came second", api);
  await types.runs(2);
  await types.unlock();
  await Promise.all([first, second]);
  expect(ended).toEqual(["came first, without a tree", "came second"]);
  for (const open of [entries, types, api, treeless, store]) await open.close();
});

describe("when the connections to the database break", () => {
  let store: Store;
  let proxy: TcpProxy;
  let database: Database;
  let api: ApiServer;
  let activity: Activity;

  beforeAll(async () => {
    store = await openStore("postgres", { queryTimeout: 500, connections: 6, queue: 10 });
    await loadBundles(store, [GOODS]);
    await buildSite(store);
    proxy = await openTcpProxy(store.url as string);
    database = await openDatabase({ url: proxy.url, dataDir: "", queryTimeout: 500, connections: 7 });
    api = await openApiServer({ ...store, database }, join(store.folder, "out"), { memory: 0 });
    activity = await openActivity(store.url as string);
  });
  afterAll(async () => {
    await activity.close();
    await api.close();
    await database.close();
    await proxy.close();
    await store.close();
  });

  const askAll = async () => (await answersOf(api, COUNTED)).map(({ status }) => status);

  test("during queries, the requests get 503 and the next ones are answered", async () => {
    await activity.lock();
    const refused = askAll();
    await activity.runs(3);
    proxy.reset();
    expect(await refused).toEqual([503, 503, 503]);
    await activity.unlock();
    expect(await askAll()).toEqual([200, 200, 200]);
  });

  test("without being closed, one request gets 503 and the next ones are answered", async () => {
    await activity.lock();
    const answered = askAll();
    await activity.runs(3);
    await activity.unlock();
    expect(await answered).toEqual([200, 200, 200]);
    proxy.cut();
    expect((await api.get(COUNTED[0] as string, { appKey: KEY })).json.error.code).toBe("DATABASE_UNAVAILABLE");
    expect(await askAll()).toEqual([200, 200, 200]);
  });
});

test("a database that takes 1.7 seconds to accept a connection, as a distant one may, is available", async () => {
  const store = await openStore("postgres");
  await loadBundles(store, [GOODS]);
  const proxy = await openTcpProxy(store.url as string, (near, far) => {
    near.pipe(far);
    far.once("data", (welcome: Buffer) => {
      far.pause();
      setTimeout(() => {
        near.write(welcome);
        far.pipe(near);
      }, 1_700);
    });
  });
  const database = await openDatabase({ url: proxy.url, dataDir: "", queryTimeout: 5_000, connections: 2 });
  const api = await openApiServer({ ...store, database }, join(store.folder, "nowhere"), { memory: 0 });
  await untilStatus(api, COUNTED[0] as string, 200);
  await api.close();
  await database.close();
  await proxy.close();
  await store.close();
});

describe("while the embedded database is slow", () => {
  let store: Store;
  let api: ApiServer;

  beforeAll(async () => {
    store = await openStore("embedded", { queryTimeout: 1_000, queue: 1 });
    await loadBundles(store, [GOODS]);
    await buildSite(store);
    api = await openApiServer(store);
  });
  afterAll(async () => {
    await api.close();
    await store.close();
  });

  /** Makes every query that reads entries run forever. */
  async function whileSlow<T>(run: () => Promise<T>): Promise<T> {
    await store.database.execute(`ALTER TABLE precast.entries RENAME TO hidden;
      CREATE VIEW precast.entries AS SELECT hidden.* FROM precast.hidden,
        (SELECT count(*) AS n FROM generate_series(1, 1000000000000)) AS slow WHERE slow.n > 0`);
    try {
      return await run();
    } finally {
      await store.database.execute("DROP VIEW precast.entries; ALTER TABLE precast.hidden RENAME TO entries");
    }
  }

  test("live queries get 504 at the time limit, 503 beyond the queue limit, and free ones are unchanged", async () => {
    const before = await answersOf(api, FREE);
    const codes: string[] = [];
    await whileSlow(async () => {
      const asked = [1, 2, 3, 4].map(async (size) => {
        const got = await api.get(`/api/v1/goods?per_page=${size}`, { appKey: KEY });
        codes.push(got.json.error.code);
      });
      expect(await answersOf(api, FREE)).toEqual(before);
      await Promise.all(asked);
    });
    expect(codes.slice(0, 2)).toEqual(["OVERLOADED", "OVERLOADED"]);
    expect(codes.slice(2)).toContain("QUERY_TIMEOUT");
    // The thread of the database was ended; the new one has the same data.
    for (const target of COUNTED) expect((await api.get(target, { appKey: KEY })).status).toBe(200);
    expect(await answersOf(api, FREE)).toEqual(before);
  });
});

test("counted requests get 503 while the embedded database cannot be reopened, and 200 once it can", async () => {
  const store = await openStore("embedded");
  const api = await openApiServer(store);
  // A key that once was unknown must not be refused as such while the database cannot be asked.
  for (const target of COUNTED) expect((await api.get(target, { appKey: KEY })).status).toBe(401);
  await loadBundles(store, [GOODS]);
  for (const target of COUNTED) expect((await api.get(target, { appKey: KEY })).status).toBe(200);
  const folder = join(store.folder, "data", "database");
  const countTo = (number: string) =>
    sql(`SELECT count(*)::text FROM (SELECT generate_series(1, ${number})) AS numbers`);
  expect(await store.database.query(countTo("10"))).toEqual([["10"]]);
  const endless = store.database.query(countTo("1000000000000"), AbortSignal.timeout(1));
  renameSync(folder, `${folder}-aside`);
  writeFileSync(folder, "");
  // The thread of the query is ended, and the new one finds no database to open.
  await expect(endless).rejects.toMatchObject({ reason: "timeout" });
  for (const target of COUNTED) {
    const { status, json } = await api.get(target, { appKey: KEY });
    expect([status, json.error.code]).toEqual([503, "DATABASE_UNAVAILABLE"]);
  }
  rmSync(folder);
  renameSync(`${folder}-aside`, folder);
  for (const target of COUNTED) expect((await untilStatus(api, target, 200)).status).toBe(200);
  await api.close();
  await store.close();
});

test("a query that fails unexpectedly gets a counted 500 that does not say why, and operators get the reason", async () => {
  const store = await openStore("embedded");
  await loadBundles(store, [GOODS]);
  await buildSite(store);
  const api = await openApiServer(store, join(store.folder, "out"), { memory: 0 });
  const free = await answersOf(api, FREE);
  await store.database.execute("ALTER TABLE precast.entries RENAME COLUMN data TO hidden");
  for (const target of COUNTED) {
    const { status, json, headers } = await api.get(target, { appKey: KEY });
    expect([status, json.error.code]).toEqual([500, "INTERNAL_ERROR"]);
    expect(json.error.message).not.toMatch(/data|column|precast|select/i);
    expect(headers).toMatchObject({ "x-request-counted": "true", "cache-control": "no-store" });
  }
  expect(api.errors.map(String)).toEqual(COUNTED.map(() => expect.stringContaining("column")));
  expect(await answersOf(api, FREE)).toEqual(free);
  await store.database.execute("ALTER TABLE precast.entries RENAME COLUMN hidden TO data");
  for (const target of COUNTED) expect((await api.get(target, { appKey: KEY })).status).toBe(200);
  await api.close();
  const counts = sql("SELECT status::text, sum(count)::text FROM precast.usage GROUP BY status ORDER BY status");
  expect(await store.database.query(counts)).toEqual([
    ["200", "3"],
    ["500", "3"],
  ]);
  await store.close();
});
