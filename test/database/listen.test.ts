/** Listeners are notified of every committed change, whatever happens to their connection. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { openDatabase } from "../../cli/database.ts";
import { type Database, keepListening } from "../../shared/database/database.ts";
import { migrate } from "../../shared/schema/migrate.ts";
import { sql } from "../../shared/sql/query.ts";
import { startPostgres, type TestServer } from "../support/postgres.ts";
import { ENGINES, openStore, type Store } from "../support/site.ts";
import { openTcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

type Ear = {
  readonly count: () => number;
  readonly stop: () => Promise<void>;
};

async function listenTo(database: Database, onHeard = () => {}): Promise<Ear> {
  let heard = 0;
  const stop = await database.listen(() => {
    heard++;
    onHeard();
  });
  return { count: () => heard, stop };
}

const addApp = (key: string) => `INSERT INTO precast.apps (key) VALUES ('${key}')`;
const CLEAR = "DELETE FROM precast.apps";

/** Every kind of change to every table of content, in an order in which each statement succeeds. */
const CHANGES = [
  addApp("a"),
  "UPDATE precast.apps SET name = 'A'",
  "INSERT INTO precast.content_types (app_id, slug) SELECT id, 'posts' FROM precast.apps",
  "UPDATE precast.content_types SET name = 'Posts'",
  "INSERT INTO precast.fields (content_type_id, name, position, type) SELECT id, 'title', 1, 'text' FROM precast.content_types",
  "UPDATE precast.fields SET label = 'Title'",
  "INSERT INTO precast.entries (content_type_id, id) SELECT id, gen_random_uuid() FROM precast.content_types",
  "UPDATE precast.entries SET status = 'published', published_at = now()",
  "DELETE FROM precast.entries",
  "DELETE FROM precast.fields",
  "DELETE FROM precast.content_types",
  "DELETE FROM precast.apps",
  "TRUNCATE precast.entries",
  "TRUNCATE precast.apps CASCADE",
];

describe.each(ENGINES)("on %s", (engine) => {
  let store: Store;
  let ear: Ear;

  beforeAll(async () => {
    store = await openStore(engine);
  });
  afterAll(() => store.close());
  beforeEach(async () => {
    await store.database.execute(CLEAR);
    ear = await listenTo(store.database);
  });
  afterEach(() => ear.stop());

  test("every kind of change notifies a listener", async () => {
    for (const change of CHANGES) {
      const before = ear.count();
      await store.database.execute(change);
      await until(`${change} to be heard`, () => ear.count() > before);
    }
  });

  test("a committed transaction notifies once, a rolled-back one never", async () => {
    await store.database.transaction("write", async (session) => {
      for (const key of ["a", "b", "c"]) await session.execute(addApp(key));
    });
    const failing = store.database.transaction("write", async (session) => {
      await session.execute(addApp("d"));
      throw new Error("no");
    });
    await expect(failing).rejects.toThrow("no");
    await store.database.execute(addApp("e"));
    // Notifications arrive in order: a wrong one would have come before the last.
    await until("the last change to be heard", () => ear.count() >= 2);
    expect(ear.count()).toBe(2);
  });

  test("a change can be read when its notification arrives", async () => {
    const seen: Promise<string>[] = [];
    const other = await listenTo(store.database, () => seen.push(keys(store.database)));
    await store.database.execute(addApp("a"));
    await until("the change to be heard", () => seen.length > 0);
    expect(await seen[0]).toBe("a");
    await other.stop();
  });

  test("reads and writes of the usage table notify no listener", async () => {
    await store.database.execute("INSERT INTO precast.usage VALUES ('a', '2026-01-01', 'list', 200, 1)");
    await store.database.query(sql("SELECT count(*)::text FROM precast.entries"));
    await store.database.execute(addApp("a"));
    await until("the change to be heard", () => ear.count() >= 1);
    expect(ear.count()).toBe(1);
  });

  test("all listeners are notified, except those that have stopped", async () => {
    const other = await listenTo(store.database);
    await store.database.execute(addApp("a"));
    await until("both to hear", () => ear.count() === 1 && other.count() === 1);
    await other.stop();
    await store.database.execute(addApp("b"));
    await until("the one to hear", () => ear.count() === 2);
    expect(other.count()).toBe(1);
  });
});

async function keys(database: Database): Promise<string> {
  return (await database.query(sql("SELECT key FROM precast.apps ORDER BY key"))).join(" ");
}

describe("lost connections on PostgreSQL", () => {
  let store: Store;
  let client: Client;

  beforeAll(async () => {
    store = await openStore("postgres");
    client = new Client({ connectionString: store.url as string });
    await client.connect();
  });
  afterAll(async () => {
    await client.end();
    await store.close();
  });

  const listeners = async (): Promise<number[]> => {
    const { rows } = await client.query(
      "SELECT pid FROM pg_stat_activity WHERE application_name = 'precast watch' AND datname = current_database()",
    );
    return rows.map(({ pid }) => pid);
  };

  test("a listening connection survives the idle_session_timeout of the database", async () => {
    const name = new URL(store.url as string).pathname.slice(1);
    const limit = (to: string) => client.query(`ALTER DATABASE "${name}" SET idle_session_timeout = ${to}`);
    onTestFinished(async () => void (await limit("DEFAULT")));
    await limit("200");
    const ear = await listenTo(store.database);
    const before = await listeners();
    const idle = new Client({ connectionString: store.url as string });
    const isEnded = new Promise((resolve) => idle.on("error", resolve));
    await idle.connect();
    await isEnded;
    expect(before).toHaveLength(1);
    expect(await listeners()).toEqual(before);
    await ear.stop();
  });

  test("a terminated listening connection is replaced, and its listener hears of that and later changes", async () => {
    const ear = await listenTo(store.database);
    const [first] = await listeners();
    await client.query("SELECT pg_terminate_backend($1)", [first]);
    // Once for the loss, once when it listens again.
    await until("both to be told", () => ear.count() >= 2);
    expect(await listeners()).not.toContain(first);
    await client.query(addApp("a"));
    await until("the change to be heard", () => ear.count() >= 3);
    await ear.stop();
  });

  test("a listening connection is closed when its last listener stops", async () => {
    const ear = await listenTo(store.database);
    expect(await listeners()).toHaveLength(1);
    await ear.stop();
    await until("the connection to close", async () => (await listeners()).length === 0);
    expect(ear.count()).toBe(0);
  });

  test("a listening connection that falls silent is replaced, and its listener hears of later changes", async () => {
    const proxy = await openTcpProxy(store.url as string);
    const database = await openDatabase({ ...OPTIONS, url: proxy.url });
    const ear = await listenTo(database);
    proxy.cut();
    await client.query(addApp("unheard"));
    await until("the loss to be told and mended", () => ear.count() >= 2);
    await client.query(addApp("heard"));
    await until("the change to be heard", () => ear.count() >= 3);
    await ear.stop();
    await database.close();
    await proxy.close();
  });

  test("a transaction fails when its connection falls silent, and the next one succeeds", async () => {
    const proxy = await openTcpProxy(store.url as string);
    const database = await openDatabase({ ...OPTIONS, url: proxy.url });
    const read = () => database.transaction("read", (session) => session.query(sql("SELECT '1'")));
    expect(await read()).toEqual([["1"]]);
    proxy.cut();
    await expect(read()).rejects.toMatchObject({ reason: "unavailable" });
    expect(await read()).toEqual([["1"]]);
    await database.close();
    await proxy.close();
  });
});

const OPTIONS = { url: null, dataDir: "", queryTimeout: null, connections: 1 };

describe("when PostgreSQL stops and starts again", () => {
  let server: TestServer;
  let store: Store;

  beforeAll(async () => {
    server = await startPostgres();
    store = await openStore("postgres", {}, server.url("postgres"));
  });
  afterAll(async () => {
    await store.close();
    await server.remove();
  });

  test.each(["fast", "immediate"] as const)("a change right after a restart is seen (%s shutdown)", async (mode) => {
    // Like a build: reads the database at every notification, and retries a read that fails.
    let seen = "";
    const read = () => {
      keys(store.database).then((found) => {
        seen = found;
      }, read);
    };
    const ear = await listenTo(store.database, read);
    await server.stop(mode);
    await server.start();
    const client = new Client({ connectionString: store.url as string });
    await client.connect();
    await client.query(addApp(mode));
    await client.end();
    await until("the change to be seen", () => seen.split(" ").includes(mode));
    await ear.stop();
  });

  test("listening begins while the server is down, and the listener is notified when it is back", async () => {
    await server.stop();
    const ear = await listenTo(store.database);
    await until("it to be told that nobody listens", () => ear.count() === 1);
    await server.start();
    await until("it to be told that it is back", () => ear.count() === 2);
    await ear.stop();
  });

  test("a listener can stop while the server is down", async () => {
    const ear = await listenTo(store.database);
    await server.stop();
    await until("the loss to be told", () => ear.count() >= 1);
    await ear.stop();
    await server.start();
    expect(ear.count()).toBe(1);
  });
});

test("listening rejects instead of waiting when the database refuses LISTEN", async () => {
  const refuse = () => Promise.reject(new Error("cannot execute LISTEN during recovery"));
  await expect(keepListening(refuse, () => {})).rejects.toThrow("during recovery");
});

test("a transaction that begins early and commits late notifies when it commits", async () => {
  const store = await openStore("postgres");
  const client = new Client({ connectionString: store.url as string });
  await client.connect();
  const ear = await listenTo(store.database);
  await client.query("BEGIN");
  await client.query(addApp("late"));
  await store.database.execute(addApp("early"));
  await until("the early one to be heard", () => ear.count() === 1);
  expect(await keys(store.database)).toBe("early");
  await client.query("COMMIT");
  await until("the late one to be heard", () => ear.count() === 2);
  expect(await keys(store.database)).toBe("early late");
  await ear.stop();
  await client.end();
  await store.close();
});

describe("on an embedded database", () => {
  test("a listener is notified after a query timeout, and of later changes", async () => {
    const store = await openStore("embedded", { queryTimeout: 1_000 });
    const ear = await listenTo(store.database);
    const slow = store.database.query(sql("SELECT count(*)::text FROM generate_series(1, 1000000000)"));
    await expect(slow).rejects.toMatchObject({ reason: "timeout" });
    await until("it to be told that something may have been missed", () => ear.count() === 1);
    await store.database.execute(addApp("a"));
    await until("the change to be heard", () => ear.count() === 2);
    await ear.stop();
    await store.close();
  });
});

describe("on a shared embedded database", () => {
  let dataDir: string;
  let host: Database;
  const open = () => openDatabase({ ...OPTIONS, dataDir, share: true });

  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), "precast-listen-"));
    host = await open();
    await migrate(host);
  });
  beforeEach(() => host.execute(CLEAR));
  afterAll(async () => {
    await host.close();
    await rm(dataDir, { recursive: true, force: true });
  });

  test("a guest is notified of changes by its host, by another guest and by itself", async () => {
    const [guest, other] = [await open(), await open()];
    const ear = await listenTo(guest);
    let expected = 0;
    for (const [database, key] of [[host, "host"] as const, [other, "other"] as const, [guest, "guest"] as const]) {
      await database.execute(addApp(key));
      expected++;
      await until(`${key} to be heard`, () => ear.count() === expected);
    }
    await ear.stop();
    await guest.close();
    await other.close();
  });

  test("a host is notified of a guest's changes, and of its own after a listening guest has closed", async () => {
    const ear = await listenTo(host);
    const leaving = await open();
    await listenTo(leaving);
    await leaving.execute(addApp("a"));
    await until("the change to be heard", () => ear.count() === 1);
    await leaving.close();
    await host.execute(addApp("b"));
    await until("the change to be heard", () => ear.count() === 2);
    await ear.stop();
  });
});
