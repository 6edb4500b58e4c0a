/**
 * Checks that a live answer is kept only as long as its content: whatever is written, and by however many writers, no
 * request gets an answer older than itself.
 */
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { AnswerCache } from "../../server/live/cache.ts";
import { openLive } from "../../server/live/live.ts";
import type { App } from "../../shared/api/catalog.ts";
import type { Plan } from "../../shared/api/plan.ts";
import { type ApiRequest, readRequest } from "../../shared/api/request.ts";
import { resolveRequest } from "../../shared/api/respond.ts";
import type { Database } from "../../shared/database/database.ts";
import { sql } from "../../shared/sql/query.ts";
import { openActivity } from "../support/activity.ts";
import { arbitraryEditOrTruncate, arbitraryStart, IDS, type KnownApp, readKnown } from "../support/edits.ts";
import { idOf, newPost, POSTS, post, SHOP } from "../support/posts.ts";
import {
  type ApiServer,
  buildSite,
  type Engine,
  MEDIA,
  openApiServer,
  openStore,
  type Store,
} from "../support/site.ts";

type Wanted = { readonly appKey: string; readonly target: string };

/** Counted requests of every shape, for the types, fields and entries that the apps have. */
function requestsOf(apps: readonly KnownApp[]): Wanted[] {
  return apps.flatMap(({ key, types }) =>
    types.flatMap(({ slug, fields, filterable, sortable, entries }) => {
      const path = `/api/v1/${slug}`;
      const relations = fields.filter(({ type }) => type === "relation").map(({ name }) => name);
      const targets = [
        `${path}?per_page=3`,
        `${path}?per_page=2&page=2`,
        `${path}/search?q=long`,
        ...filterable.slice(0, 3).map((name) => `${path}?filter[${name}][neq]=a&per_page=5`),
        ...sortable.slice(0, 2).map((name) => `${path}?sort=-${name}&page=1`),
        ...[...entries.slice(0, 2), IDS[0]].map((id) => `${path}/${id}?populate=${relations}`),
      ];
      return targets.map((target) => ({ appKey: key, target }));
    }),
  );
}

describe.each<{ engine: Engine; runs: number }>([
  { engine: "postgres", runs: 3 },
  { engine: "embedded", runs: 1 },
])("on $engine", ({ engine, runs }) => {
  let store: Store;
  beforeAll(async () => {
    store = await openStore(engine);
  });
  afterAll(() => store.close());

  test("a server that keeps live answers gives the same ones as a server that keeps none", async () => {
    const edits = fc.array(arbitraryEditOrTruncate(), { minLength: 4, maxLength: 10, size: "max" });
    const property = fc.asyncProperty(arbitraryStart(), edits, async (start, edits) => {
      await store.database.execute("DELETE FROM precast.apps");
      await store.database.transaction("write", (session) => session.execute(start.script));
      const keeps = await openApiServer(store, join(store.folder, "none"));
      const forgets = await openApiServer(store, join(store.folder, "none"), { memory: 0 });
      try {
        for (const edit of [null, ...edits]) {
          if (edit !== null) await write(edit.write(await readKnown(store.database)));
          for (const { target, appKey } of requestsOf(await readKnown(store.database))) {
            const { status, text } = await forgets.get(target, { appKey });
            for (let time = 0; time < 2; time++) {
              const kept = await keeps.get(target, { appKey });
              expect({ target, status: kept.status, text: kept.text }).toEqual({ target, status, text });
            }
          }
        }
      } finally {
        await keeps.close();
        await forgets.close();
      }
    });
    // Shrinking a failing example takes minutes and shows nothing more.
    await fc.assert(property, { numRuns: runs, endOnFailure: true });
  }, 300_000);

  /** A write that the database refuses changes nothing, which is a valid step too. */
  async function write(script: string): Promise<void> {
    if (script !== "") await store.database.transaction("write", (session) => session.execute(script)).catch(() => {});
  }
});

type Late = {
  readonly database: Database;
  /** How many queries so far match the pattern. */
  readonly asked: (pattern: RegExp) => number;
  /** Holds back the rows of the next such query: returns a promise of their arrival and a function to release them. */
  readonly hold: (pattern: RegExp) => readonly [arrived: Promise<void>, release: () => void];
};

function answersLate(database: Database): Late {
  let held: { readonly pattern: RegExp; readonly arrive: () => void; readonly gate: Promise<void> } | null = null;
  const texts: string[] = [];
  const query: Database["query"] = async (asked, signal) => {
    texts.push(asked.text);
    const rows = await database.query(asked, signal);
    const own = held;
    if (own === null || !own.pattern.test(asked.text)) return rows;
    held = null;
    own.arrive();
    await own.gate;
    return rows;
  };
  const hold: Late["hold"] = (pattern) => {
    let [arrive, release] = [() => {}, () => {}];
    const arrived = new Promise<void>((resolve) => {
      arrive = resolve;
    });
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    held = { pattern, arrive, gate };
    return [arrived, release];
  };
  const asked = (pattern: RegExp) => texts.filter((text) => pattern.test(text)).length;
  return { database: { ...database, query }, asked, hold };
}

describe("on postgres, case by case", () => {
  const LIST = "/api/v1/posts?per_page=5";
  let store: Store;
  let api: ApiServer;

  beforeAll(async () => {
    store = await openStore("postgres", { queryTimeout: 5_000 });
  });
  beforeEach(async () => {
    await store.database.execute("DELETE FROM precast.apps");
    await store.database.execute(SHOP);
    await buildSite(store);
    api = await openApiServer(store);
  });
  afterEach(() => api.close());
  afterAll(() => store.close());

  const get = (target: string) => api.get(target, { appKey: "shop" });
  const titles = async () => (await get(LIST)).json.data.map(({ title }: { title: string }) => title);
  const run = (script: string) => store.database.execute(script);

  test("a repeated request is answered while the entries are locked, and a new one times out", async () => {
    const before = await get(LIST);
    await get(LIST);
    const activity = await openActivity(store.url as string);
    onTestFinished(activity.close);
    await activity.lock("precast.entries");
    const kept = await get(LIST);
    expect(kept).toMatchObject({ status: 200, text: before.text });
    expect(kept.headers).toMatchObject({
      etag: before.headers.etag,
      "x-request-counted": "true",
      "cache-status": "precast; fwd=bypass",
      "cache-control": "private, no-cache",
    });
    expect((await get("/api/v1/posts?per_page=4")).status).toBe(504);
    await activity.unlock();
  });

  test("kept answers share one object for their app until the app changes", async () => {
    const held = new Set<unknown>();
    const answerCache: AnswerCache = { find: () => undefined, keep: (_, { app }) => held.add(app) };
    const live = openLive(store.database, { ...store.limits, mediaBaseUrl: MEDIA, answerCache });
    onTestFinished(live.close);
    const { signal } = new AbortController();
    const ask = async (perPage: number) => {
      const app = (await live.findApp("shop", signal)) as App;
      const request = readRequest({ method: "GET", target: `/api/v1/posts?per_page=${perPage}`, appKey: "shop" });
      await live.answer(app, resolveRequest(app, request as ApiRequest).plan as Plan, signal);
    };
    for (const perPage of [1, 2, 3]) await ask(perPage);
    expect(held.size).toBe(1);
    await run("UPDATE precast.content_types SET name = 'Articles'");
    await ask(3);
    expect(held.size).toBe(2);
  });

  test("another spelling of a request gets the kept answer", async () => {
    for (const target of [LIST, LIST]) await get(target);
    const activity = await openActivity(store.url as string);
    onTestFinished(activity.close);
    await activity.lock("precast.entries");
    expect((await get("/api/v1/posts/?utm_source=x&per_page=05")).status).toBe(200);
    await activity.unlock();
  });

  test("a write is not shown before its transaction commits, and is shown right after", async () => {
    for (let time = 0; time < 2; time++) expect(await titles()).toContain("posts 6");
    await store.database.transaction("write", async (session) => {
      await session.execute(`UPDATE precast.entries SET data = '{"title": "other"}' WHERE ${post(6)}`);
      expect(await titles()).toContain("posts 6");
    });
    expect(await titles()).toContain("other");
  });

  test("a change of a related entry, or unpublishing its type, shows in the entry that populates it", async () => {
    await run(`INSERT INTO precast.fields (content_type_id, name, position, type, target)
      SELECT id, 'page', 3, 'relation', 'pages' FROM precast.content_types WHERE slug = 'posts'`);
    await run(
      `UPDATE precast.entries SET data = data || '{"page": "00000000-0000-4000-8000-000000000001"}' WHERE ${post(1)}`,
    );
    await buildSite(store);
    const target = "/api/v1/posts/00000000-0000-4000-8000-000000000001?populate=page";
    for (let time = 0; time < 2; time++) expect((await get(target)).json.data.page.title).toBe("pages 1");
    await run(
      `UPDATE precast.entries SET data = '{"title": "other"}' WHERE NOT (${POSTS}) AND data ->> 'title' = 'pages 1'`,
    );
    expect((await get(target)).json.data.page.title).toBe("other");
    await run("UPDATE precast.content_types SET published = false WHERE slug = 'pages'");
    expect((await get(target)).json.data.page).toBeNull();
  });

  test("two types that swap their slugs do not get each other's kept answers", async () => {
    await run(`INSERT INTO precast.fields (content_type_id, name, position, type, target)
      SELECT id, 'page', 3, 'relation', 'pages' FROM precast.content_types`);
    await buildSite(store);
    const title = async () => (await get(`/api/v1/posts/${idOf(1)}?populate=page`)).json.data.title;
    for (let time = 0; time < 2; time++) expect(await title()).toBe("posts 1");
    await run(`UPDATE precast.content_types SET slug = 'swapping' WHERE slug = 'posts';
      UPDATE precast.content_types SET slug = 'posts' WHERE slug = 'pages';
      UPDATE precast.content_types SET slug = 'pages' WHERE slug = 'swapping'`);
    expect(await title()).toBe("pages 1");
  });

  test("TRUNCATE, a new entry and another TRUNCATE each show in the next answer", async () => {
    await run("TRUNCATE precast.entries");
    for (let time = 0; time < 2; time++) expect(await titles()).toEqual([]);
    await run(newPost(1));
    for (let time = 0; time < 2; time++) expect(await titles()).toEqual(["late 1"]);
    await run("TRUNCATE precast.entries");
    for (let time = 0; time < 2; time++) expect(await titles()).toEqual([]);
    // Empty again, and not what it was: the answer from before the second TRUNCATE must not return.
    await run(newPost(2));
    expect(await titles()).toEqual(["late 2"]);
  });

  test("a client sees its own write in its next answer while others send the same request", async () => {
    let stopped = false;
    const others = Array.from({ length: 6 }, async () => {
      while (!stopped) await get(LIST);
    });
    for (let round = 0; round < 150; round++) {
      await run(`UPDATE precast.entries SET data = '{"title": "round ${round}"}' WHERE ${post(6)}`);
      expect(await titles()).toContain(`round ${round}`);
    }
    stopped = true;
    await Promise.all(others);
    expect(await titles()).toContain("round 149");
  });

  const SEARCH = /page\.data/;

  /** A server of its own, on a database whose answers can be held back. */
  async function openLate(out = "out"): Promise<Late & Pick<ApiServer, "get">> {
    const late = answersLate(store.database);
    const slow = await openApiServer({ ...store, database: late.database }, join(store.folder, out));
    onTestFinished(slow.close);
    return { ...late, get: (target) => slow.get(target, { appKey: "shop" }) };
  }

  test.each([
    ["edition", 2, /mark/],
    ["answer", 2, SEARCH],
    ["very first answer", 0, SEARCH],
  ])("a request after a write does not get the %s that another one requested before it", async (_, times, pattern) => {
    const late = await openLate();
    const ask = async () => (await late.get(LIST)).json.data[0].title;
    for (let time = 0; time < times; time++) await ask();
    await run(`UPDATE precast.entries SET data = '{"title": "once"}' WHERE ${post(6)}`);
    const [arrived, release] = late.hold(pattern);
    const before = ask();
    await arrived;
    await run(`UPDATE precast.entries SET data = '{"title": "twice"}' WHERE ${post(6)}`);
    const after = ask();
    // A request that was sent after it is answered, so it has reached the server.
    await late.get("/api/v1/_schemas");
    release();
    expect(await after).toBe("twice");
    await before;
    expect(await ask()).toBe("twice");
  });

  test.each([
    ["once", "", 1],
    ["once more for requests sent after a change", newPost(7), 2],
  ])("concurrent first requests for the same list query the entries %s", async (_, change, looks) => {
    const late = await openLate();
    const [arrived, release] = late.hold(SEARCH);
    const first = late.get(LIST);
    await arrived;
    await run(change);
    const others = Array.from({ length: 20 }, () => late.get(LIST));
    await late.get("/api/v1/_schemas");
    release();
    for (const { status } of await Promise.all([first, ...others])) expect(status).toBe(200);
    expect(late.asked(SEARCH)).toBe(looks);
  });

  const RENAME = "UPDATE precast.content_types SET name = 'Articles' WHERE slug = 'posts'";

  test.each([
    ["app", /FROM precast\.apps/, RENAME, '"Articles"', "/nowhere"],
    // This request needs the app: once it is answered, the one before it has found the app too.
    ["catalog", /sum\(change\)/, newPost(7), '"entry_count":7', "/api/v1/nothing"],
  ])(
    "without a tree, a request after a write does not get the %s that another one requested before it",
    async (_, pattern, change, changed, behind) => {
      const late = await openLate("none");
      const [arrived, release] = late.hold(pattern);
      const before = late.get("/api/v1/_schemas");
      await arrived;
      await run(change);
      const after = late.get("/api/v1/_schemas");
      expect((await late.get(behind)).status).toBe(404);
      release();
      expect((await after).text).toContain(changed);
      expect((await before).text).not.toContain(changed);
    },
  );

  test("each of 250 updates gives the marks a sum that they have not had before", async () => {
    const stamp = async () =>
      (await store.database.query(sql("SELECT sum(mark)::text FROM precast.entry_counts")))[0]?.[0];
    const seen = new Set([await stamp()]);
    // Enough statements for rows to be folded into one in between.
    for (let round = 0; round < 250; round++) {
      await run(`UPDATE precast.entries SET data = data WHERE ${post(1 + (round % 6))}`);
      seen.add(await stamp());
    }
    expect(seen.size).toBe(251);
  });
});
