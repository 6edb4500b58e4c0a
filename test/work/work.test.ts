/** `precast work`: publications reach the bucket, whatever dies, fails or takes long meanwhile, and it ends exact. */
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { countQueue, hasQueue, registerTarget } from "../../cli/work/queue.ts";
import { openPlainPool, type PlainPool } from "../../shared/database/postgres/pool.ts";
import { sql } from "../../shared/sql/query.ts";
import { BROWSER, openBrowser, openPage, startStudio } from "../support/browser.ts";
import { openPlace, type Place, type RunningCommand, smallApp } from "../support/cli.ts";
import { differencesOf, filesOf, internalFilesAfter, internalFilesOf } from "../support/deployed.ts";
import { type S3, startS3 } from "../support/s3.ts";
import { openStore, type Store } from "../support/site.ts";
import { until } from "../support/until.ts";

const TARGET = "s3://content/api";

let store: Store;
let place: Place;
let s3: S3;

beforeAll(async () => {
  store = await openStore("postgres");
  place = openPlace({ DATABASE_URL: store.url ?? "" });
});
afterAll(async () => {
  await place.close();
  await store.close();
});
beforeEach(async () => {
  s3 = await startS3();
});
afterEach(async () => {
  await place.quit();
  await s3.close();
  await store.database.execute("DELETE FROM precast.apps; DELETE FROM precast.targets");
  if (await hasQueue(store.database)) await store.database.execute("DELETE FROM graphile_worker._private_jobs");
});

/** Starts a worker, and resolves when it takes jobs. */
async function startWorker(line = "", env: Record<string, string> = {}): Promise<RunningCommand> {
  const worker = place.start(`work --target ${TARGET} --retries 0 --json ${line}`, { ...s3.env, ...env });
  await worker.printed(/Publishing to s3:/);
  return worker;
}

/** Counts who waits for a lock. */
const WAITING = `SELECT count(*)::text FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock'`;

const publish = (app: string, names: string[]) => place.import(smallApp(app, names));
const visible = () => until("everything to be visible", async () => (await countQueue(store.database)).oldest === null);

/** What each publication did, in the order in which they ended. */
function publicationsOf(worker: RunningCommand): { app: string; mode: string; written: number }[] {
  return worker
    .output()
    .stdout.split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}

async function expectExact(apps: readonly string[]): Promise<void> {
  await place.build("full");
  expect(differencesOf(filesOf(s3), join(place.folder, "full"))).toEqual([]);
  expect(internalFilesOf(s3)).toEqual(internalFilesAfter(apps));
}

test("what is there when it starts is published, then each change, a new app and the end of one", async () => {
  await publish("shop", ["Ada", "Bob"]);
  await publish("going", ["Zoe"]);
  const worker = await startWorker();
  await visible();
  await expectExact(["going", "shop"]);
  await publish("shop", ["Ada", "Eve"]);
  await publish("coming", ["Kim"]);
  await store.database.execute("DELETE FROM precast.apps WHERE key = 'going'");
  await visible();
  await expectExact(["coming", "shop"]);
  const modes = publicationsOf(worker).map(({ app, mode }) => `${app} ${mode}`);
  expect(modes).toEqual(expect.arrayContaining(["shop full", "shop incremental", "coming full", "going removal"]));
  expect(await worker.stop()).toMatchObject({ code: 0 });
});

test("workers that start at the same moment on a new database install the queue once", async () => {
  await store.database.execute("DROP SCHEMA IF EXISTS graphile_worker CASCADE");
  const pools = Array.from({ length: 16 }, () => openPlainPool(store.url ?? "", 1, "test"));
  // Their connections are open, so that all begin at once.
  await Promise.all(pools.map((pool) => pool.query("SELECT 1")));
  const register = (pool: PlainPool, index: number) =>
    registerTarget({
      ...{ database: store.database, pool, settings: "{}", say: () => {}, stop: new AbortController().signal },
      target: index % 2 === 0 ? "s3://a" : "s3://b",
    }).finally(() => pool.end());
  const registered = await Promise.all(pools.map(register));
  expect(new Set(registered.map((registration) => registration?.id)).size).toBe(2);
});

test("a worker that starts later continues from the bucket, and fetches only what an update needs", async () => {
  const others = Array.from({ length: 20 }, (_, index) => `N${index}`);
  await publish("shop", [...others, "Dan"]);
  await (
    await startWorker(`--data-dir one`).then(async (worker) => {
      await visible();
      return worker;
    })
  ).stop();
  await publish("shop", [...others, "Eve"]);
  const before = s3.requests.length;
  const worker = await startWorker(`--data-dir two`);
  await visible();
  await worker.stop();
  expect(publicationsOf(worker)).toMatchObject([{ app: "shop", mode: "incremental" }]);
  const files = s3.requests.slice(before).filter(({ method, key }) => method === "GET" && !key.includes("/.precast/"));
  expect(files.length).toBeLessThan(filesOf(s3).size / 2);
  await expectExact(["shop"]);
});

test("a burst of publications of one app is one job at a time, and the last of them is visible", async () => {
  await publish("shop", ["Ada"]);
  const worker = await startWorker();
  await visible();
  const update = (number: number) =>
    store.database.execute(
      `UPDATE precast.entries SET data = data || '{"name": "N${number}"}' WHERE status = 'published'`,
    );
  for (let number = 0; number < 100; number++) await update(number);
  await visible();
  expect(publicationsOf(worker).length).toBeLessThan(60);
  expect([...filesOf(s3).values()].join("")).toContain("N99");
  await expectExact(["shop"]);
});

test("a publication that is rolled back queues nothing, nor does a draft", async () => {
  await publish("shop", ["Ada"]);
  const worker = await startWorker();
  await visible();
  await worker.stop();
  const entry = 'UPDATE precast.entries SET data = data || \'{"name": "X"}\'';
  await store.database.execute(`BEGIN; ${entry}; SAVEPOINT a; ${entry}; ROLLBACK TO a; ROLLBACK`);
  await store.database.execute(
    "INSERT INTO precast.entries (content_type_id, id) SELECT id, gen_random_uuid() FROM precast.content_types",
  );
  expect(await countQueue(store.database)).toMatchObject({ waiting: 0, running: 0, failed: 0 });
  await store.database.execute(entry);
  expect(await countQueue(store.database)).toMatchObject({ waiting: 1 });
});

test("a transaction that sees no later commits publishes an app that another has published meanwhile", async () => {
  await publish("shop", ["Ada"]);
  await (await startWorker()).stop();
  const rename = (name: string) => `UPDATE precast.apps SET name = '${name}'`;
  await store.database.transaction("write", async (session) => {
    await session.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ");
    await session.execute("SELECT FROM precast.fields");
    await store.database.execute(rename("First"));
    await session.execute("UPDATE precast.content_types SET name = 'Second'");
  });
  expect(await place.json("queue")).toMatchObject({ waiting: 2, apps: [{ app: "shop" }, { app: "shop" }] });
  await startWorker();
  await visible();
  await expectExact(["shop"]);
});

test.each([
  ["the app gets another key", "UPDATE precast.apps SET key = 'other' WHERE key = 'shop'"],
  [
    "the type is moved to another app",
    "UPDATE precast.content_types SET app_id = (SELECT id FROM precast.apps WHERE key = 'other')",
  ],
])("an entry that is edited while %s is published there", async (_, change) => {
  await publish("shop", ["Ada"]);
  if (change.includes("content_types"))
    await store.database.execute("INSERT INTO precast.apps (key, name) VALUES ('other', 'B')");
  await startWorker();
  await visible();
  let changed: Promise<void> | null = null;
  await store.database.transaction("write", async (session) => {
    await session.execute('UPDATE precast.entries SET data = data || \'{"name": "Eve"}\'');
    changed = store.database.execute(change);
    await until("the change to wait for the edit, or to be published without it", async () => {
      const [row] = await store.database.query(sql(WAITING));
      return row?.[0] !== "0" || [...filesOf(s3).keys()].some((path) => path.startsWith("s-other/v1/authors"));
    });
  });
  await changed;
  await visible();
  expect([...filesOf(s3)].filter(([path]) => path.startsWith("s-other/")).join("")).toContain("Eve");
  await expectExact(["other", "shop"].slice(0, change.includes("content_types") ? 2 : 1));
});

test("what a transaction writes that began before the first worker of the target is published", async () => {
  await publish("shop", ["Ada"]);
  let worker: RunningCommand | null = null;
  await store.database.transaction("write", async (session) => {
    await session.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ");
    await session.execute("SELECT FROM precast.apps");
    worker = place.start(`work --target ${TARGET} --retries 0 --json`, s3.env);
    await Promise.race([worker.printed(/Waiting for transactions/), worker.printed(/Publishing to s3:/).then(visible)]);
    await session.execute('UPDATE precast.entries SET data = data || \'{"name": "Eve"}\'');
  });
  await (worker as RunningCommand | null)?.printed(/Publishing to s3:/);
  await visible();
  await expectExact(["shop"]);
});

test("a worker that waits for such a transaction ends when it is told to, and the next one waits again", async () => {
  await publish("shop", ["Ada"]);
  await store.database.transaction("write", async (session) => {
    await session.execute('UPDATE precast.entries SET data = data || \'{"name": "Eve"}\'');
    for (let count = 0; count < 2; count++) {
      const worker = place.start(`work --target ${TARGET} --retries 0`, s3.env);
      await worker.printed(/Waiting for transactions .*pg_stat_activity\.pid: \d+/);
      expect(await worker.stop()).toMatchObject({ code: 0 });
    }
  });
  expect(filesOf(s3).size).toBe(0);
  await startWorker();
  await visible();
  await expectExact(["shop"]);
});

describe("with two processes", () => {
  test("what one was doing when it was killed, the other does, and both then share the work", async () => {
    await publish("shop", ["Ada", "Bob"]);
    const first = await startWorker("--data-dir one");
    await visible();
    let pid: number | null = first.pid;
    s3.trouble = ({ method, key }) => {
      if (pid === null || method !== "PUT" || !key.includes("/entry/")) return undefined;
      process.kill(pid, "SIGKILL");
      pid = null;
      return "cut";
    };
    await publish("shop", ["Ada", "Eve"]);
    await first.end();
    const second = await startWorker("--data-dir two");
    await visible();
    await expectExact(["shop"]);
    const third = await startWorker("--data-dir three");
    const apps = Array.from({ length: 12 }, (_, index) => `app${index}`);
    for (const app of apps) await publish(app, ["Ada"]);
    await visible();
    await expectExact([...apps, "shop"]);
    for (const worker of [second, third]) {
      expect(publicationsOf(worker).length).toBeGreaterThan(0);
      expect(await worker.stop()).toMatchObject({ code: 0 });
    }
  });

  test("one that is started with other options lets the others end, and everything is published anew", async () => {
    await publish("shop", ["Ada"]);
    const first = await startWorker("--data-dir one");
    await visible();
    const second = await startWorker("--data-dir two --cache-control no-store");
    const { code, stderr } = await first.end();
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/Another worker was started with .*other settings.*Start it again/),
    ]);
    await until("all to be published anew", () => publicationsOf(second).length > 0);
    expect(publicationsOf(second)).toMatchObject([{ app: "shop", written: filesOf(s3).size + 1 }]);
  });
});

test("an app that fails is tried again and shown, while others are published", async () => {
  await publish("bad", ["Ada"]);
  s3.trouble = ({ method, key }) =>
    method === "PUT" && key.includes("s-bad/v1/")
      ? { status: 403, body: "<Error><Code>AccessDenied</Code></Error>" }
      : undefined;
  const worker = await startWorker();
  await publish("good", ["Bob"]);
  await until("the good one to be visible", () => [...filesOf(s3).keys()].some((path) => path.startsWith("s-good/")));
  await until("the bad one to fail", async () => (await countQueue(store.database)).failed === 1);
  const shown = await place.json<{ failed: number; apps: object[] }>("queue");
  expect(shown).toMatchObject({ failed: 1, apps: [{ app: "bad", state: "failed", target: TARGET }] });
  expect(JSON.stringify(shown.apps)).toContain("denies access");
  expect(worker.output().stderr).toMatch(/bad was not published, and is tried again\. .*denies access/);
  s3.trouble = () => undefined;
  expect((await place.call("queue retry bad")).stdout).toBe("1 app is tried again now.\n");
  await visible();
  await expectExact(["bad", "good"]);
});

test("a large app is built in a lane of its own: a small one is visible while it is uploaded", async () => {
  await publish(
    "large",
    Array.from({ length: 2_050 }, (_, index) => `N${index}`),
  );
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  s3.trouble = ({ method, key }) => (method === "PUT" && key.includes("s-large/v1/") ? { after: held } : undefined);
  await startWorker("--apps-per-process 1");
  await until("the large one to be uploaded", () => s3.requests.some(({ key }) => key.includes("s-large/v1/")));
  await publish("small", ["Ada"]);
  await until("the small one to be visible", () => [...s3.objects.keys()].includes("api/.precast/s-small.json"));
  expect((await place.json<{ apps: object[] }>("queue")).apps).toMatchObject([
    { app: "large", large: true, state: "running" },
  ]);
  release();
  await visible();
  await expectExact(["large", "small"]);
});

test("SIGTERM lets it finish the app that it is publishing, and take no other", async () => {
  await publish("shop", ["Ada"]);
  let pid = 0;
  s3.trouble = ({ method, key }) => {
    if (method === "PUT" && key.endsWith("/_schemas.json")) process.kill(pid, "SIGTERM");
    return undefined;
  };
  const worker = place.start(`work --target ${TARGET} --json`, s3.env);
  pid = worker.pid;
  expect(await worker.end()).toMatchObject({ code: 0 });
  expect(publicationsOf(worker)).toMatchObject([{ app: "shop", mode: "full" }]);
  await expectExact(["shop"]);
});

test.skipIf(BROWSER === null)("the studio shows what waits and why something failed", async () => {
  await publish("bad", ["Ada"]);
  s3.trouble = ({ method, key }) => (method === "PUT" && key.includes("s-bad/v1/") ? { status: 403 } : undefined);
  await startWorker();
  await until("the bad one to fail", async () => (await countQueue(store.database)).failed === 1);
  const browser = await openBrowser();
  const { page } = await openPage(browser);
  await page.goto(`${await startStudio(place)}#health`);
  await page.getByText("0 waiting, 0 running, 1 failed").waitFor();
  expect(await page.getByLabel("Apps to be published").locator("tbody tr").allInnerTexts()).toEqual([
    expect.stringMatching(/^bad\s+failed\s.*denies access/s),
  ]);
  await browser.close();
});

describe("precast queue", () => {
  test("drops an app until its next publication, and forgets a target", async () => {
    await publish("shop", ["Ada"]);
    await (await startWorker()).stop();
    await publish("shop", ["Bob"]);
    expect((await place.call("queue drop shop")).stdout).toBe("1 app is dropped.\n");
    expect(await place.json("queue")).toMatchObject({ waiting: 0, apps: [] });
    expect((await place.call(`queue drop --target ${TARGET}`)).stdout).toMatch(/is forgotten/);
    await publish("shop", ["Cid"]);
    expect(await place.json("queue")).toMatchObject({ waiting: 0, oldest: null });
  });

  test.each([
    ["queue push", /^There is no action push: specify retry or drop, or none to see the queue\.\n$/],
    ["queue drop", /^Specify what to drop: the keys of apps, or --target for all of a target\.\n$/],
    ["queue show shop", /^Specify what to do with shop: retry or drop\.\n$/],
    ["queue --target s3://x", /^--target is only for `precast queue drop`, without apps/],
    ["work", /^--target is missing: specify s3:\/\/bucket\/prefix or file:\/\/\/folder\.\n$/],
    ["work --target s3://content", /AWS_ACCESS_KEY_ID/],
  ])("refuses `%s` and says what would be right", async (line, message) => {
    expect(await place.call(line)).toMatchObject({ code: 1, stdout: "", stderr: expect.stringMatching(message) });
  });
});

test("with an admin port, health and the state of the queue are shown", async () => {
  await publish("shop", ["Ada"]);
  const worker = await startWorker("--admin-port 0");
  await worker.printed(/Health and metrics: http/);
  const url = /Health and metrics: (\S+)/.exec(worker.output().stderr)?.[1] ?? "";
  await visible();
  const get = async (path: string) => {
    const response = await fetch(`${url}${path}`);
    return [response.status, await response.text()] as const;
  };
  expect(await get("/healthz")).toEqual([200, '{"status":"ok"}']);
  expect(await get("/readyz")).toEqual([200, '{"status":"ok","error":null}']);
  const [, metrics] = await get("/metrics");
  expect(metrics).toMatch(/^precast_queue_waiting 0$/m);
  expect(metrics).toMatch(/^precast_queue_oldest_seconds 0$/m);
  expect(metrics).toMatch(/^precast_publications_total\{result="done"\} 1$/m);
});
