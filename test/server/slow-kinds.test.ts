/** Live queries of a slow kind leave places for the others, and who could not be answered in time does not wait for it. */
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type Activity, observe } from "../support/activity.ts";
import { COUNTED, GOODS, KEY } from "../support/goods.ts";
import { type Door, type Got, loadBundles, openDoor, openStore, type Store } from "../support/site.ts";
import { until } from "../support/until.ts";

const [LIST = ""] = COUNTED;
const PLACES = 4;

let store: Store;
let door: Door;
let activity: Activity;

beforeAll(async () => {
  store = await openStore("postgres", { connections: PLACES, queue: 20, queryTimeout: 1_000 });
  await loadBundles(store, [GOODS]);
  // Without a tree and without memory each request is a query.
  door = await openDoor(store, join(store.folder, "nowhere"), { memory: 0 });
  activity = await observe(store.url as string);
  // To connect takes a part of the time that a query has, and on a busy machine all of it.
  await until("every place to have a connection", async () => {
    await Promise.all(Array.from({ length: PLACES }, (_, index) => get(`${LIST}&page=${index + 100}`)));
    return (await activity.connections()) >= PLACES;
  });
});
afterEach(() => activity.unlock());
afterAll(async () => {
  await activity.close();
  await door.close();
  expect(door.errors).toEqual([]);
  await store.close();
});

/** Only searches wait for it. */
const holdWords = () => activity.lock("precast.entry_words");
const get = (target: string): Promise<Got> => door.get(target, { appKey: KEY });

/** No two ask the same, and none what another test asks. */
let asked = 0;
function search(count: number): Promise<Got>[] {
  return Array.from({ length: count }, () => {
    asked++;
    return get(`/api/v1/goods/search?q=chair${asked}`);
  });
}

const outcome = ({ status, json }: Got): string => `${status} ${json.error?.code ?? ""}`.trim();
const outcomes = async (answers: readonly Promise<Got>[]) => (await Promise.all(answers)).map(outcome).sort();

describe("searches that hang", () => {
  test("may take every place while nobody knows that they do", async () => {
    await holdWords();
    const hanging = search(PLACES);
    await activity.runs(PLACES);
    expect(await outcomes(hanging)).toEqual(Array(PLACES).fill("504 QUERY_TIMEOUT"));
  });

  test("are tried one at a time after that, refused at once beyond it, and hinder no list", async () => {
    await holdWords();
    const tried = search(1);
    await activity.runs(1);
    const before = door.seen.length;
    const refused = search(6);
    await until("all to have come", () => door.seen.length - before + door.state().waiting >= 6);
    expect(door.state()).toMatchObject({ running: 1, waiting: 0 });
    expect(await outcomes(refused)).toEqual(Array(6).fill("503 OVERLOADED"));
    const lists = Array.from({ length: PLACES }, (_, index) => get(`${LIST}&page=${index + 1}`));
    expect(await outcomes(lists)).toEqual(Array(PLACES).fill("200"));
    expect(await activity.running()).toBe(1);
    expect(await outcomes(tried)).toEqual(["504 QUERY_TIMEOUT"]);
  });

  test("are answered as ever when they hang no longer, and take every place again", async () => {
    // Each that is answered tells that they are fast again.
    for (let count = 1; count <= PLACES; count++) while ((await outcomes(search(count))).some((one) => one !== "200"));
    await holdWords();
    const waiting = search(PLACES);
    await activity.runs(PLACES);
    await activity.unlock();
    expect(await outcomes(waiting)).toEqual(Array(PLACES).fill("200"));
  });
});
