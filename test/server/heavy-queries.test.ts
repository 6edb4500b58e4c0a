/** A flood of searches leaves permits for entries and plain lists, and is refused at once beyond its half of the queue. */
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type Activity, openActivity } from "../support/activity.ts";
import { COUNTED, GOODS, ID, KEY } from "../support/goods.ts";
import {
  type ApiServer,
  loadBundles,
  openApiServer,
  openStore,
  type ReceivedAnswer,
  type Store,
} from "../support/site.ts";
import { until } from "../support/until.ts";

const [LIST = ""] = COUNTED;
const PERMITS = 4;
const QUEUE = 20;

let store: Store;
let api: ApiServer;
let activity: Activity;

beforeAll(async () => {
  store = await openStore("postgres", { connections: PERMITS, queue: QUEUE, queryTimeout: 3_000 });
  await loadBundles(store, [GOODS]);
  // Without a tree and without a cache, each request runs a query.
  api = await openApiServer(store, join(store.folder, "nowhere"), { memory: 0 });
  activity = await openActivity(store.url as string);
  // Opening a connection uses part of a query's time limit, and on a busy machine all of it.
  await until("every permit to have a connection", async () => {
    await Promise.all(Array.from({ length: PERMITS }, (_, index) => get(`${LIST}&page=${index + 100}`)));
    return (await activity.connections()) >= PERMITS;
  });
});
afterEach(() => activity.unlock());
afterAll(async () => {
  await activity.close();
  await api.close();
  expect(api.errors).toEqual([]);
  await store.close();
});

/** Locks a table that only searches read. */
const holdWords = () => activity.lock("precast.entry_words");
const get = (target: string): Promise<ReceivedAnswer> => api.get(target, { appKey: KEY });

/** No two searches are equal, not even in different tests, so none share a query. */
let asked = 0;
function search(count: number): Promise<ReceivedAnswer>[] {
  return Array.from({ length: count }, () => {
    asked++;
    return get(`/api/v1/goods/search?q=chair${asked}`);
  });
}

const outcome = ({ status, json }: ReceivedAnswer): string => `${status} ${json.error?.code ?? ""}`.trim();
const outcomes = async (answers: readonly Promise<ReceivedAnswer>[]) =>
  (await Promise.all(answers)).map(outcome).sort();

describe("searches that hang", () => {
  test("take half of the permits", async () => {
    await holdWords();
    const hanging = search(PERMITS);
    await activity.runs(PERMITS / 2);
    await until("the others to wait", () => api.state().waiting === PERMITS / 2);
    const refused = Array(PERMITS / 2).fill("503 OVERLOADED");
    expect(await outcomes(hanging)).toEqual([...refused, ...Array(PERMITS / 2).fill("504 QUERY_TIMEOUT")]);
  });

  test("take half of the queue, are refused at once beyond that, and delay no list and no entry", async () => {
    await holdWords();
    const first = search(PERMITS / 2);
    await activity.runs(PERMITS / 2);
    const before = api.seen.length;
    const later = search(QUEUE / 2 + 6);
    await until("all to have come", () => api.seen.length - before + api.state().waiting >= QUEUE / 2 + 6);
    expect(api.seen.length - before).toBe(6);
    expect(api.state()).toMatchObject({ running: PERMITS / 2, waiting: QUEUE / 2 });
    const others = Array.from({ length: PERMITS }, (_, index) => [
      get(`${LIST}&page=${index + 1}`),
      get(`/api/v1/goods/${ID.slice(0, -1)}${index + 1}`),
    ]).flat();
    const found = ["200", "200", "200", "404 ENTRY_NOT_FOUND"];
    expect(await outcomes(others)).toEqual([...found, ...Array(PERMITS).fill("200")].sort());
    expect(await activity.running()).toBe(PERMITS / 2);
    expect(await outcomes(later)).toEqual(Array(QUEUE / 2 + 6).fill("503 OVERLOADED"));
    expect(await outcomes(first)).toEqual(Array(PERMITS / 2).fill("504 QUERY_TIMEOUT"));
  });

  test("are all answered once the database is fast again", async () => {
    await holdWords();
    const waiting = search(PERMITS);
    await activity.runs(PERMITS / 2);
    await activity.unlock();
    expect(await outcomes(waiting)).toEqual(Array(PERMITS).fill("200"));
  });
});
