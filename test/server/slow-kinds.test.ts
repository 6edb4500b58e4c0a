/** Live queries of a slow kind leave places for others, and those that could not finish in time are refused at once. */
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type Activity, openActivity } from "../support/activity.ts";
import { COUNTED, GOODS, KEY } from "../support/goods.ts";
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
const PLACES = 4;

let store: Store;
let api: ApiServer;
let activity: Activity;

beforeAll(async () => {
  store = await openStore("postgres", { connections: PLACES, queue: 20, queryTimeout: 1_000 });
  await loadBundles(store, [GOODS]);
  // Without a tree and without a cache, each request runs a query.
  api = await openApiServer(store, join(store.folder, "nowhere"), { memory: 0 });
  activity = await openActivity(store.url as string);
  // Opening a connection uses part of a query's time limit, and on a busy machine all of it.
  await until("every place to have a connection", async () => {
    await Promise.all(Array.from({ length: PLACES }, (_, index) => get(`${LIST}&page=${index + 100}`)));
    return (await activity.connections()) >= PLACES;
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
  test("take half of the places while nothing is known of them", async () => {
    await holdWords();
    const hanging = search(PLACES);
    await activity.runs(PLACES / 2);
    await until("the others to wait", () => api.state().waiting === PLACES / 2);
    const refused = Array(PLACES / 2).fill("503 OVERLOADED");
    expect(await outcomes(hanging)).toEqual([...refused, ...Array(PLACES / 2).fill("504 QUERY_TIMEOUT")]);
  });

  test("run one at a time once known to be slow, are refused at once beyond that, and delay no list", async () => {
    await holdWords();
    const tried = search(1);
    await activity.runs(1);
    const before = api.seen.length;
    const refused = search(6);
    await until("all to have come", () => api.seen.length - before + api.state().waiting >= 6);
    expect(api.state()).toMatchObject({ running: 1, waiting: 0 });
    expect(await outcomes(refused)).toEqual(Array(6).fill("503 OVERLOADED"));
    const lists = Array.from({ length: PLACES }, (_, index) => get(`${LIST}&page=${index + 1}`));
    expect(await outcomes(lists)).toEqual(Array(PLACES).fill("200"));
    expect(await activity.running()).toBe(1);
    expect(await outcomes(tried)).toEqual(["504 QUERY_TIMEOUT"]);
  });

  test("may take every place again once they are fast", async () => {
    // Each search that is answered shows that searches are fast again.
    for (let count = 1; count <= PLACES; count++) while ((await outcomes(search(count))).some((one) => one !== "200"));
    await holdWords();
    const waiting = search(PLACES);
    await activity.runs(PLACES);
    await activity.unlock();
    expect(await outcomes(waiting)).toEqual(Array(PLACES).fill("200"));
  });
});
