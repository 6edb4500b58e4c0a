/** Checks that entries requested at the same moment share a query, and that each gets the answer it would get alone. */
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type Live, openLive } from "../../server/live/live.ts";
import { openEntryLoader } from "../../server/live/loader.ts";
import type { App } from "../../shared/api/catalog.ts";
import { entryNotFound, isRefusal } from "../../shared/api/errors.ts";
import type { EntryPlan, Plan } from "../../shared/api/plan.ts";
import { type ApiRequest, readRequest } from "../../shared/api/request.ts";
import { resolveRequest } from "../../shared/api/respond.ts";
import type { Database } from "../../shared/database/database.ts";
import { sql } from "../../shared/sql/query.ts";
import { openActivity } from "../support/activity.ts";
import { arbitraryBundles } from "../support/content.ts";
import type { Bundle } from "../support/model.ts";
import { idOf, SHOP } from "../support/posts.ts";
import { ENGINES, loadBundles, MEDIA, openStore, type Store } from "../support/site.ts";

const FORGETS = { find: () => undefined, keep: () => {} };
/** Fewer requests than the queue takes. */
const AT_ONCE = 40;
/** The signal of a client that does not disconnect. */
const stays = () => new AbortController().signal;

function openLiveOn({ limits }: Store, database: Database): Live {
  const live = openLive(database, { ...limits, mediaBaseUrl: MEDIA, answerCache: FORGETS });
  onTestFinished(live.close);
  return live;
}

/** Requests that are refused without a query have no plan and are left out. */
function plansOf(app: App, targets: readonly string[]): Plan[] {
  const requests = targets.map((target) => readRequest({ method: "GET", target, appKey: app.key }) as ApiRequest);
  return requests.map((request) => resolveRequest(app, request).plan).filter((plan) => !isRefusal(plan));
}

/** The database, and the text of each query that it gets. */
function counted(database: Database): { readonly database: Database; readonly texts: string[] } {
  const texts: string[] = [];
  const query: Database["query"] = (asked, signal) => {
    texts.push(asked.text);
    return database.query(asked, signal);
  };
  return { database: { ...database, query }, texts };
}

/** Requests for every entry of a bundle and for a missing one of each type, without and with `populate`. */
function targetsOf({ types, entries }: Bundle): string[] {
  return types.flatMap(({ slug, fields }) => {
    const relations = fields.filter(({ type }) => type === "relation").map(({ name }) => name);
    const ids = [...(entries[slug] ?? []).map(({ id }) => id), idOf(0)];
    const asked = ["", `?populate=${relations}`, ...relations.map((name) => `?populate=${name}`), "?populate=nope"];
    return ids.flatMap((id) => asked.map((query) => `/api/v1/${slug}/${id}${query}`));
  });
}

describe.each(ENGINES)("on the %s database", (engine) => {
  let store: Store;
  beforeAll(async () => {
    store = await openStore(engine);
  });
  afterAll(() => store.close());

  const contents = fc.sample(arbitraryBundles(), { numRuns: engine === "postgres" ? 9 : 3, seed: 20261123 });

  test.each(contents.map((bundles, index) => ({ bundles, index })))(
    "content $index: entries requested concurrently get the same answers as one by one",
    async ({ bundles }) => {
      await store.database.query(sql("DELETE FROM precast.apps"));
      await loadBundles(store, bundles);
      const { database, texts } = counted(store.database);
      const live = openLiveOn(store, database);
      for (const bundle of bundles) {
        const app = (await live.findApp(bundle.app.key, stays())) as App;
        const plans = plansOf(app, targetsOf(bundle));
        const alone: unknown[] = [];
        texts.length = 0;
        for (const plan of plans) alone.push(await live.answer(app, plan, stays()));
        expect(texts.length).toBe(plans.length);
        texts.length = 0;
        const together: unknown[] = [];
        for (let at = 0; at < plans.length; at += AT_ONCE) {
          const asked = plans.slice(at, at + AT_ONCE).map((plan) => live.answer(app, plan, stays()));
          together.push(...(await Promise.all(asked)));
        }
        expect(together).toEqual(alone);
        expect(texts.length).toBeLessThanOrEqual(plans.length);
      }
    },
  );
});

describe("entries requested at the same moment", () => {
  let store: Store;
  beforeAll(async () => {
    store = await openStore("postgres");
    await store.database.execute(SHOP);
  });
  afterAll(() => store.close());

  async function openShop() {
    const { database, texts } = counted(store.database);
    const live = openLiveOn(store, database);
    const app = (await live.findApp("shop", stays())) as App;
    const planOf = (post: number) => plansOf(app, [`/api/v1/posts/${idOf(post)}`])[0] as EntryPlan;
    const ask = (post: number, signal = stays()) => live.answer(app, planOf(post), signal);
    texts.length = 0;
    return { app, planOf, ask, texts };
  }

  test("are read by one query, and a later one by another", async () => {
    const { ask, texts } = await openShop();
    const first = [1, 2, 3, 4, 3].map((post) => ask(post));
    await Promise.all(first);
    expect(texts.length).toBe(1);
    await ask(5);
    expect(texts.length).toBe(2);
  });

  test("are not joined by an entry that is requested while their query runs", async () => {
    const { ask } = await openShop();
    const activity = await openActivity(store.url as string);
    onTestFinished(activity.close);
    await activity.lock();
    const early = ask(1);
    await activity.runs(1);
    const late = ask(2);
    await activity.runs(2);
    await activity.unlock();
    for (const answer of [await early, await late]) expect(answer).toHaveProperty("bytes");
  });

  test("keep their query when one client disconnects; it is cancelled when the last one does", async () => {
    const { ask } = await openShop();
    const activity = await openActivity(store.url as string);
    onTestFinished(activity.close);
    await activity.lock();
    const leaving = [new AbortController(), new AbortController()] as const;
    const gone = leaving.map(({ signal }, index) => ask(index + 1, signal).catch((error: unknown) => error));
    await activity.runs(1);
    leaving[0].abort("left");
    expect(await gone[0]).toBe("left");
    expect(await activity.running()).toBe(1);
    leaving[1].abort("left");
    expect(await gone[1]).toBe("left");
    // The lock is still held, so the query was cancelled.
    await activity.runs(0);
    await activity.unlock();
    expect(await ask(1)).toHaveProperty("bytes");
  });

  test("all fail as unavailable when their query is cancelled", async () => {
    const { ask } = await openShop();
    const activity = await openActivity(store.url as string);
    onTestFinished(activity.close);
    await activity.lock();
    const asked = [1, 2, 3].map((post) => ask(post).catch((error: unknown) => error));
    await activity.runs(1);
    await activity.cancel();
    for (const error of await Promise.all(asked)) expect(error).toMatchObject({ reason: "unavailable" });
    await activity.unlock();
  });

  test("are split into two queries when one has much less time left than the others", async () => {
    const { app, planOf } = await openShop();
    const loads: { readonly ids: readonly string[]; readonly left: number }[] = [];
    const loadEntry = openEntryLoader({
      load: async (_, _app, plans, left) => {
        loads.push({ ids: plans.map(({ id }) => id), left });
        return plans.map(() => entryNotFound());
      },
      limit: 1_000,
    });
    const asked = [1_000, 150, 980].map((left, index) => loadEntry(app, planOf(index + 1), left, stays()));
    await Promise.all(asked);
    expect(loads).toEqual([
      { ids: [idOf(1), idOf(3)], left: 980 },
      { ids: [idOf(2)], left: 150 },
    ]);
  });
});
