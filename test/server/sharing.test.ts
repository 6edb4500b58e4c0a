/**
 * Identical live requests share one query. A client that disconnects leaves the queue, and ends its query if nobody else
 * waits for that.
 */
import { once } from "node:events";
import { request } from "node:http";
import { Socket } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { signalGone } from "../../server/http/connection.ts";
import { openLive } from "../../server/live/live.ts";
import type { App } from "../../shared/api/catalog.ts";
import type { Plan } from "../../shared/api/plan.ts";
import { type ApiRequest, readRequest } from "../../shared/api/request.ts";
import { ClientGone, resolveRequest } from "../../shared/api/respond.ts";
import { sql } from "../../shared/sql/query.ts";
import { type Activity, openActivity } from "../support/activity.ts";
import { COUNTED, GOODS, KEY } from "../support/goods.ts";
import {
  type ApiServer,
  buildSite,
  loadBundles,
  MEDIA,
  openApiServer,
  openStore,
  type ReceivedAnswer,
  type Store,
} from "../support/site.ts";
import { until } from "../support/until.ts";

const LIST = "/api/v1/goods?per_page=1";
const OTHER = "/api/v1/goods?per_page=3";
const THIRD = "/api/v1/goods?per_page=4";

let store: Store;
let api: ApiServer;
/** A server of the same content, without a tree. */
let live: ApiServer;
let activity: Activity;

beforeAll(async () => {
  store = await openStore("postgres", { connections: 2, queue: 1, queryTimeout: 20_000 });
  await loadBundles(store, [GOODS]);
  await buildSite(store);
  // Without a cache, each request runs a query.
  api = await openApiServer(store, join(store.folder, "out"), { memory: 0 });
  live = await openApiServer(store, join(store.folder, "nowhere"), { memory: 0 });
  activity = await openActivity(store.url as string);
});
afterEach(() => activity.unlock());
afterAll(async () => {
  await activity.close();
  expect([...api.errors, ...live.errors]).toEqual([]);
  await api.close();
  await live.close();
  await store.close();
});

const get = (target: string): Promise<ReceivedAnswer> => api.get(target, { appKey: KEY });

/** Sends a request; `leave` disconnects its client. */
function visit(target: string, { url }: ApiServer = api): { leave: () => void; left: Promise<void> } {
  const { hostname, port } = new URL(url);
  const headers = { "X-App-Key": KEY };
  const outgoing = request({ hostname, port, path: target, headers, agent: false });
  const left = new Promise<void>((resolve) => outgoing.once("close", resolve));
  outgoing.on("error", () => {});
  outgoing.end();
  return { leave: () => void outgoing.destroy(), left };
}

describe("identical live requests", () => {
  test("share one query, and all get the same answer", async () => {
    await activity.lock();
    const asked = Array.from({ length: 40 }, () => get(LIST));
    await activity.runs(1);
    // Two queries in all: the other request's, and one that the 40 share, which would not all fit into the queue.
    const other = get(OTHER);
    await activity.runs(2);
    await activity.unlock();
    const answers = await Promise.all(asked);
    expect((await other).json.data).toHaveLength(3);
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    expect(answers[0]?.status).toBe(200);
    expect(answers[0]?.json.data).toHaveLength(1);
    expect(new Set(answers.map(({ headers }) => headers["x-request-counted"]))).toEqual(new Set(["true"]));
  });

  test("share one query even if they are spelled differently", async () => {
    await activity.lock();
    const spellings = [
      LIST,
      "/api/v1/goods?page=1&per_page=1",
      "/api/v1/goods?per_page=1&page=1",
      "/api/v1/goods/?per_page=9&per_page=1&utm_source=x",
      "/api/v1/goods?per_page=1&sort=",
      "/api/v1/goods?per_page=1&filter[title]=",
    ];
    const asked = spellings.map(get);
    await activity.runs(1);
    const other = get(OTHER);
    await activity.runs(2);
    await activity.unlock();
    await other;
    for (const answer of await Promise.all(asked)) expect([answer.status, answer.json.data.length]).toEqual([200, 1]);
  });

  test("do not share a query when the app was changed between them", async () => {
    await activity.lock("precast.entry_counts");
    const before = live.get("/api/v1/_schemas", { appKey: KEY });
    await activity.runs(1);
    await activity.query("UPDATE precast.content_types SET name = 'Wares'");
    const after = live.get("/api/v1/_schemas", { appKey: KEY });
    await activity.runs(2);
    await activity.unlock();
    expect((await before).text).toContain('"Goods"');
    expect((await after).text).toContain('"Wares"');
    await activity.query("UPDATE precast.content_types SET name = 'Goods'");
  });

  test.each(["/api/v1/_schemas", LIST, "/api/v1/goods/search?q=goods"])(
    "are not given up with one that has waited before and has little time left: %s",
    async (target) => {
      const answerCache = { find: () => undefined, keep: () => {} };
      const own = openLive(store.database, { ...store.limits, mediaBaseUrl: MEDIA, answerCache });
      onTestFinished(own.close);
      const { signal } = new AbortController();
      const app = (await own.findApp(KEY, signal)) as App;
      const { plan } = resolveRequest(app, readRequest({ method: "GET", target, appKey: KEY }) as ApiRequest);
      await activity.lock();
      const late = own.answer(app, plan as Plan, signal, performance.now() - 0.98 * store.limits.queryTimeout);
      const fresh = own.answer(app, plan as Plan, signal);
      await expect(late).rejects.toThrow();
      await activity.unlock();
      expect(await fresh).toHaveProperty("bytes");
    },
  );

  test("share the query that reads an app without a tree", async () => {
    await activity.lock("precast.apps");
    const asked = Array.from({ length: 20 }, () => live.get("/api/v1/_schemas", { appKey: KEY }));
    await activity.runs(1);
    await activity.unlock();
    for (const { status } of await Promise.all(asked)) expect(status).toBe(200);
  });

  test("all get 503 when their shared query fails", async () => {
    await activity.lock();
    const asked = [get(LIST), get(LIST), get(LIST)];
    await activity.runs(1);
    await activity.cancel();
    for (const got of await Promise.all(asked)) {
      // No 504: an administrator cancelled the query, before the time limit.
      expect([got.status, got.json.error.code]).toEqual([503, "DATABASE_UNAVAILABLE"]);
      expect(got.headers["retry-after"]).toBe("1");
    }
    await activity.unlock();
    expect((await get(LIST)).status).toBe(200);
  });
});

describe("a client that disconnects", () => {
  test("ends its query even while that waits for a lock", async () => {
    await activity.lock();
    const visitor = visit(LIST);
    await activity.runs(1);
    visitor.leave();
    await activity.runs(0);
    await activity.unlock();
    expect((await get(LIST)).status).toBe(200);
  });

  test("does not end a query that others wait for", async () => {
    await activity.lock();
    const [first, second] = [visit(LIST), visit(LIST)];
    await activity.runs(1);
    const stays = get(LIST);
    // The other request was sent last: once its query runs, the server has received those above.
    const other = get(OTHER);
    await activity.runs(2);
    first.leave();
    second.leave();
    await Promise.all([first.left, second.left]);
    expect((await api.get("/api/v1/goods", { appKey: KEY })).status).toBe(200);
    expect(await activity.running()).toBe(2);
    await activity.unlock();
    expect([(await stays).status, (await other).status]).toEqual([200, 200]);
  });

  test("gives its place in the queue to the next request", async () => {
    await activity.lock();
    const running = [get(LIST), get(OTHER)];
    await activity.runs(2);
    const visitor = visit(THIRD);
    await until("it to wait", () => api.state().waiting === 1);
    const refused = await get("/api/v1/goods?per_page=5");
    expect([refused.status, refused.json.error.code, refused.headers["retry-after"]]).toEqual([503, "OVERLOADED", "1"]);
    visitor.leave();
    await until("its place to be free", () => api.state().waiting === 0);
    const next = get("/api/v1/goods?per_page=6");
    await until("the next to wait", () => api.state().waiting === 1);
    await activity.unlock();
    for (const { status } of await Promise.all([...running, next])) expect(status).toBe(200);
  });

  test("is known to have gone also when that was before its request began", async () => {
    const socket = new Socket().destroy();
    await once(socket, "close");
    expect(signalGone(socket).reason).toBeInstanceOf(ClientGone);
  });

  test("is reported with its address and the status 499", async () => {
    const before = api.seen.length;
    await activity.lock();
    const visitor = visit(COUNTED[1] as string);
    await activity.runs(1);
    visitor.leave();
    await until("its report", () => api.seen.length > before);
    await activity.unlock();
    const unmetered = { shape: null, counted: false, source: "none" };
    expect(api.seen.slice(before)).toMatchObject([{ status: 499, client: "127.0.0.1", ...unmetered }]);
  });

  test("is not counted when its query never finished", async () => {
    const counts = async () =>
      (
        await store.database.query(
          sql("SELECT coalesce(sum(count), 0)::text FROM precast.usage WHERE shape = 'search'"),
        )
      )[0]?.[0];
    const other = await openApiServer(store, join(store.folder, "out"), { memory: 0 });
    await activity.lock();
    const visitor = visit(COUNTED[1] as string, other);
    await activity.runs(1);
    visitor.leave();
    await activity.runs(0);
    await activity.unlock();
    await other.close();
    expect(await counts()).toBe("0");
    const next = await openApiServer(store, join(store.folder, "out"), { memory: 0 });
    await next.get(COUNTED[1] as string, { appKey: KEY });
    await next.close();
    expect(await counts()).toBe("1");
    expect([...other.errors, ...next.errors]).toEqual([]);
  });
});
