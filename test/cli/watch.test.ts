/** `precast watch` and `serve --watch` as processes: published content becomes files, whatever happens meanwhile. */
import { getEventListeners } from "node:events";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Client } from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, test } from "vitest";
import { rebuildOnChange } from "../../cli/commands/watch.ts";
import { openDatabase } from "../../cli/database.ts";
import type { Database } from "../../shared/database/database.ts";
import { findSocket } from "../../shared/database/embedded/share.ts";
import { takeLock } from "../../shared/lock.ts";
import { sql } from "../../shared/sql/query.ts";
import {
  holdPort,
  idOf,
  openEmbeddedPlace,
  openPlace,
  type Place,
  type RunningCommand,
  type RunningServer,
  readTree,
  SHOP,
  SHOP_FOLDER,
  shop,
  shopWithout,
  smallApp,
} from "../support/cli.ts";
import { differencesOf } from "../support/deployed.ts";
import { copyPostgres } from "../support/migrated.ts";
import { createDatabase, dropDatabase, startPostgres, type TestServer } from "../support/postgres.ts";
import { ENGINES, type Engine } from "../support/site.ts";
import { until } from "../support/until.ts";

const FREE = "/api/v1/posts";
const asShop = { appKey: SHOP };

type Build = {
  readonly apps: { key: string; written: number; deleted: number; seconds: number }[];
  readonly seconds: number;
};

let place: Place;
let url: string | null;

/** A place with the shop in a database of its own, which is by default on the PostgreSQL of all tests. */
async function settle(engine: Engine, server?: string): Promise<void> {
  url = engine === "postgres" ? await (server === undefined ? copyPostgres() : createDatabase(server)) : null;
  place = url === null ? await openEmbeddedPlace() : openPlace({ DATABASE_URL: url });
  if (server !== undefined) await place.call("migrate");
  await place.import(shop());
}
async function leave(): Promise<void> {
  await place.close();
  if (url !== null) await dropDatabase(url);
}

const out = () => join(place.folder, "out");
const titleFile = () => join(out(), SHOP_FOLDER, "posts", "entry", `${idOf(1)}.json`);
const setTitle = (title: string) =>
  `UPDATE precast.entries SET data = jsonb_set(data, '{title}', '"${title}"')
   WHERE id = '${idOf(1)}' AND content_type_id = (SELECT id FROM precast.content_types WHERE slug = 'posts')`;

/** Resolves when the entry's file holds the title. */
const shows = (title: string) => until(`the file to hold ${title}`, () => fileHolds(title));
function fileHolds(title: string): boolean {
  try {
    return readFileSync(titleFile(), "utf8").includes(`"${title}"`);
  } catch {
    return false;
  }
}

/** Resolves when the tree equals that of a build from scratch. */
async function isExact(): Promise<void> {
  await place.build("scratch");
  const scratch = [...readTree(join(place.folder, "scratch"))];
  rmSync(join(place.folder, "scratch"), { recursive: true });
  await until("the tree to be that of a build from nothing", () => sameFiles(scratch));
}
function sameFiles(files: readonly (readonly [string, string])[]): boolean {
  try {
    return JSON.stringify([...readTree(out())]) === JSON.stringify(files);
  } catch {
    return false; // A file was deleted while the tree was read.
  }
}

function buildsOf(watch: RunningCommand): Build[] {
  const lines = watch.output().stdout.split("\n").slice(0, -1);
  return lines.map((line) => JSON.parse(line) as Build);
}

/** Starts `precast watch`, and waits for its first build. */
async function startWatch(line = "watch --json"): Promise<RunningCommand> {
  const watch = place.start(line);
  await until("the first build", () => buildsOf(watch).length > 0);
  return watch;
}

/** Connects as a CMS would: to PostgreSQL, or through the process that has the embedded database open. */
async function withCms<T>(work: (database: Database) => Promise<T>): Promise<T> {
  const dataDir = join(place.folder, ".precast");
  const database = await openDatabase({ url, dataDir, queryTimeout: null, connections: 2 });
  return work(database).finally(() => database.close());
}

describe.each(ENGINES)("on %s", (engine) => {
  beforeAll(() => settle(engine));
  beforeEach(async () => {
    rmSync(out(), { recursive: true, force: true });
    await place.import(shop());
  });
  afterEach(() => place.quit());
  afterAll(leave);

  test("watch builds at its start, and again after an edit", async () => {
    const watch = await startWatch();
    expect(buildsOf(watch)[0]).toMatchObject({ apps: [{ key: SHOP, written: 46, deleted: 0 }] });
    await withCms((cms) => cms.execute(setTitle("Edited")));
    await shows("Edited");
    await isExact();
    expect((await watch.stop()).code).toBe(0);
  });

  test("watch builds every kind of change", async () => {
    await startWatch();
    await withCms(async (cms) => {
      for (const change of [
        `UPDATE precast.entries SET status = 'draft' WHERE id = '${idOf(2)}'`,
        `DELETE FROM precast.entries WHERE id = '${idOf(3)}'`,
        "UPDATE precast.fields SET label = 'Heading' WHERE name = 'title'",
        "UPDATE precast.content_types SET published = false WHERE slug = 'authors'",
        "INSERT INTO precast.apps (key, name) VALUES ('late', 'Late')",
        "UPDATE precast.apps SET media_base_url = 'https://media.test' WHERE key = 'Shop'",
        "DELETE FROM precast.apps WHERE key = 'late'",
        "TRUNCATE precast.entries",
      ]) {
        await cms.execute(change);
        await isExact();
      }
    });
  });

  test("watch combines a burst of 50 transactions into fewer than 25 builds", async () => {
    const watch = await startWatch();
    const before = buildsOf(watch).length;
    await withCms(async (cms) => {
      for (let number = 1; number <= 50; number++) await cms.execute(setTitle(`Number ${number}`));
    });
    await shows("Number 50");
    await isExact();
    await watch.stop();
    expect(buildsOf(watch).length - before).toBeLessThan(25);
  });

  test("watch prints a JSON value for each build with --json, and a line of text without", async () => {
    const json = await startWatch();
    await withCms((cms) => cms.execute(setTitle("For JSON")));
    await shows("For JSON");
    const { code, stdout } = await json.stop();
    expect(code).toBe(0);
    for (const line of stdout.trimEnd().split("\n")) expect(JSON.parse(line)).toHaveProperty("seconds");

    const plain = place.start("watch");
    await plain.printed(/Watching/);
    await withCms((cms) => cms.execute(setTitle("For people")));
    await plain.printed(
      /^Shop: wrote \d+ files, \d+ unchanged, 0 deleted, .+ in \d+\.\d+ s \(incremental: since .+\)$/m,
    );
    expect((await plain.stop()).stderr).toBe("");
  });

  test.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)("%s ends watch with exit code 0", async (signal) => {
    const watch = await startWatch();
    expect((await watch.stop(signal)).code).toBe(0);
  });

  test("watch waits while another build holds the lock, reports that once, and then builds", async () => {
    const watch = await startWatch();
    const lock = takeLock(join(out(), ".precast", "build.lock"));
    await withCms((cms) => cms.execute(setTitle("Behind the lock")));
    await watch.printed(/Another build/);
    expect(fileHolds("Behind the lock")).toBe(false);
    lock.release();
    await shows("Behind the lock");
    await watch.stop();
    // Reported once, however often the build was retried.
    expect(watch.output().stderr.match(/Another build/g)).toHaveLength(1);
    expect(watch.output().stderr).toContain("Building works again.");
  });

  test("watch retries after a build that could not write the tree", async () => {
    const watch = await startWatch();
    rmSync(out(), { recursive: true });
    writeFileSync(out(), "a file where the folder was");
    await withCms((cms) => cms.execute(setTitle("Nowhere to go")));
    await watch.printed(/A build failed/);
    rmSync(out());
    await shows("Nowhere to go");
    await isExact();
    expect((await watch.stop()).code).toBe(0);
  });

  test("watch --app builds only that app, and waits for it when it does not exist yet", async () => {
    const watch = place.start("watch --app late");
    await watch.printed(/No app has the key late/);
    await withCms((cms) => cms.execute(setTitle("Not asked for")));
    await place.import(smallApp("late", ["A"]));
    await watch.printed(/^late: .*wrote \d+ files/m);
    expect([...readTree(out()).keys()].filter((path) => !path.startsWith("s-late/"))).toEqual([]);
    await watch.stop();
    await withCms((cms) => cms.execute("DELETE FROM precast.apps WHERE key = 'late'"));
  });

  test("serve --watch builds at its start, and after an import beside it", async () => {
    const server = await place.serve("--watch");
    await server.printed(/^Shop: .*wrote 46 files/m);
    expect((await server.get(FREE, asShop)).headers["cache-status"]).toBe("precast; hit");
    await place.import(shopWithout(1));
    await until("the entry to go", async () => !(await server.get(FREE, asShop)).text.includes('"One"'));
    await isExact();
    const { code, stderr } = await server.stop();
    expect([code, stderr]).toEqual([0, ""]);
  });
});

describe("on PostgreSQL", () => {
  let client: Client;
  /** For queries while the client is in a transaction. */
  let observer: Client;

  beforeAll(async () => {
    await settle("postgres");
    client = new Client({ connectionString: url as string });
    observer = new Client({ connectionString: url as string });
    await Promise.all([client.connect(), observer.connect()]);
  });
  beforeEach(async () => {
    rmSync(out(), { recursive: true, force: true });
    await place.import(shop());
  });
  afterEach(async () => {
    await client.query("ROLLBACK");
    await place.quit();
  });
  afterAll(async () => {
    await Promise.all([client.end(), observer.end()]);
    await leave();
  });

  /** Resolves when a build waits for the lock that the client holds. */
  const buildWaits = () =>
    until("a build to wait for the lock", async () => {
      const { rowCount } = await observer.query(
        `SELECT 1 FROM pg_stat_activity WHERE application_name = 'precast' AND wait_event_type = 'Lock'
         AND datname = current_database()`,
      );
      return rowCount !== 0;
    });
  const lockEntries = () => client.query("BEGIN; LOCK TABLE precast.entries IN ACCESS EXCLUSIVE MODE");

  test("watch misses no change when all its connections are killed", async () => {
    const watch = await startWatch();
    for (const title of ["Killed once", "Killed twice"]) {
      await client.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE application_name LIKE 'precast%' AND datname = current_database()`);
      await client.query(setTitle(title));
      await shows(title);
    }
    await isExact();
    expect((await watch.stop()).code).toBe(0);
  });

  test("watch builds a transaction that commits after later ones were built", async () => {
    await startWatch();
    const late = new Client({ connectionString: url as string });
    await late.connect();
    await late.query("BEGIN");
    await late.query("UPDATE precast.entries SET data = jsonb_set(data, '{name}', '\"Late\"') WHERE data ? 'name'");
    await client.query(setTitle("Early"));
    await shows("Early");
    await late.query("COMMIT");
    await late.end();
    await isExact();
    // Not the whole tree: the last build may still be deleting its stage.
    expect([...readTree(join(out(), SHOP_FOLDER)).values()].some((text) => text.includes('"Late"'))).toBe(true);
  });

  test("watch builds a change that is committed during a build", async () => {
    await startWatch();
    await lockEntries();
    await observer.query("UPDATE precast.apps SET name = 'Announced'");
    // By then the build has its snapshot, and cannot see the change that follows.
    await buildWaits();
    await client.query(setTitle("During the build"));
    await client.query("COMMIT");
    await shows("During the build");
    await isExact();
  });

  test("watch finishes the running build before it ends on SIGTERM", async () => {
    await lockEntries();
    const watch = place.start("watch --json");
    await buildWaits();
    const stopped = watch.stop();
    await client.query("COMMIT");
    const { code, stdout } = await stopped;
    expect([code, JSON.parse(stdout).apps[0].written]).toEqual([0, 46]);
    await isExact();
  });

  test("watch and serve --watch report a missing schema, and exit with 1", async () => {
    const empty = await createDatabase(inject("postgresUrl"));
    for (const line of ["watch", "serve --watch --port 0"]) {
      const { code, stdout, stderr } = await place.run(line, { DATABASE_URL: empty });
      expect([line, code, stdout]).toEqual([line, 1, ""]);
      expect(stderr).toMatch(/^[^\n]*precast migrate[^\n]*\n$/);
    }
    await dropDatabase(empty);
  });

  test("watch reports at its start that the database does not answer, and exits with 1", async () => {
    const held = await holdPort();
    await held.release();
    const away = { DATABASE_URL: `postgres://nobody@127.0.0.1:${held.port}/none` };
    const { code, stdout, stderr } = await place.run("watch", away);
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(/^The database did not answer [^\n]*\n$/);
  });

  test("serve --watch answers while its first build runs, and exits with 0 when stopped meanwhile", async () => {
    await place.build();
    await lockEntries();
    const server = await place.serve("--watch");
    await buildWaits();
    expect((await server.get(FREE, asShop)).status).toBe(200);
    const stopped = server.stop();
    await server.printed(/Stopping/);
    await client.query("COMMIT");
    expect((await stopped).code).toBe(0);
  });

  test("serve --watch --json prints only its URL", async () => {
    const server = await place.serve("--watch --json");
    await shows("One");
    const { code, stdout } = await server.stop();
    expect([code, JSON.parse(stdout)]).toEqual([0, { url: server.url }]);
  });

  test("serve without --watch builds nothing", async () => {
    const server = await place.serve();
    await withCms((cms) => cms.execute(setTitle("Not built")));
    await server.stop();
    expect(() => readTree(out())).toThrow(/ENOENT/);
  });

  test("a build of serve --watch may take longer than the timeout of live queries", async () => {
    await lockEntries();
    const server = await place.serve("--watch");
    await buildWaits();
    await client.query("SELECT pg_sleep(6); COMMIT");
    await server.printed(/^Shop: .*wrote 46 files/m);
    expect((await server.stop()).stderr).toBe("");
  });
});

describe("on a PostgreSQL that stops and starts again", () => {
  let server: TestServer;

  beforeAll(async () => {
    server = await startPostgres();
    await settle("postgres", server.url("postgres"));
  });
  afterEach(() => place.quit());
  afterAll(async () => {
    await leave();
    await server.remove();
  });

  /** Commits as soon as the server answers, when watch may not have noticed the restart yet. */
  async function change(title: string): Promise<void> {
    const client = new Client({ connectionString: url as string });
    await client.connect();
    await client.query(setTitle(title));
    await client.end();
  }

  /** Starts a server, and waits until it has queried the database and, with --watch, has built and listens. */
  async function startServing(options: string): Promise<RunningServer> {
    const changes = join(out(), ".precast", "changes.json");
    rmSync(changes, { force: true });
    const serving = await place.serve(options);
    expect((await serving.get("/api/v1/authors?per_page=1", asShop)).status).toBe(200);
    // A server finishes the build that runs before it ends, and a build waits for a database that hangs.
    if (options.includes("--watch")) await until("its first build", () => existsSync(changes));
    return serving;
  }

  test.each(["fast", "immediate"] as const)(
    "watch misses no change across a restart of the database (%s shutdown)",
    async (mode) => {
      const watch = await startWatch();
      await server.stop(mode);
      await watch.printed(/The database did not answer/);
      await server.start();
      await change(`Back from ${mode}`);
      await shows(`Back from ${mode}`);
      await change(`Heard after ${mode}`);
      await shows(`Heard after ${mode}`);
      await isExact();
      expect((await watch.stop()).code).toBe(0);
    },
  );

  test("watch exits with 0 on SIGTERM while the database is stopped", async () => {
    const watch = await startWatch();
    await server.stop();
    await watch.printed(/The database did not answer/);
    expect((await watch.stop()).code).toBe(0);
    await server.start();
  });

  test.each(["watch", "serve", "serve --workers 2", "serve --workers 2 --watch"])(
    "%s exits with 0 on SIGTERM while the database hangs",
    async (line) => {
      const running = await (line === "watch" ? startWatch() : startServing(line.slice("serve".length)));
      server.pause();
      const { code } = await running.stop().finally(server.resume);
      expect(code).toBe(0);
    },
  );

  test("serve --watch that starts without its database builds once the database answers", async () => {
    await server.stop();
    const serving = await place.serve("--watch --quiet");
    await serving.printed(/A build failed/);
    await server.start();
    await change("There at last");
    await shows("There at last");
    const { code, stderr } = await serving.stop();
    // In the log, where the failure is: whoever reads about one reads about the other.
    expect([code, stderr]).toEqual([0, expect.stringMatching(/^\{.*"msg":"Building works again\."\}$/m)]);
  });
});

describe("on an embedded database that watch shares with other processes", () => {
  beforeAll(() => settle("embedded"));
  afterEach(() => place.quit());
  afterAll(leave);

  test("watch builds beside a server, without it, and beside the next one", async () => {
    const server = await place.serve();
    const watch = await startWatch();
    await withCms((cms) => cms.execute(setTitle("Beside")));
    await until("it to be served", async () => (await server.get(FREE, asShop)).text.includes('"Beside"'));
    await server.stop();
    await withCms((cms) => cms.execute(setTitle("Without")));
    await shows("Without");
    const next = await place.serve();
    await withCms((cms) => cms.execute(setTitle("Again")));
    await until("it to be served", async () => (await next.get(FREE, asShop)).text.includes('"Again"'));
    expect((await next.stop()).code).toBe(0);
    expect((await watch.stop()).code).toBe(0);
  });

  test("watch starts even when the server is killed during watch's first request", async () => {
    const server = await place.serve();
    process.kill(server.pid, "SIGSTOP");
    const starting = startWatch();
    const socket = findSocket(join(place.folder, ".precast"));
    const sockets = () =>
      readFileSync("/proc/net/unix", "utf8")
        .split("\n")
        .filter((line) => line.endsWith(socket));
    await until("watch to have joined the server", () => sockets().length > 1);
    process.kill(server.pid, "SIGKILL");
    expect((await (await starting).stop()).code).toBe(0);
  });

  test("watch builds at its start a change made while it did not run", async () => {
    await (await startWatch()).stop();
    await withCms((cms) => cms.execute(setTitle("Before")));
    expect(fileHolds("Before")).toBe(false);
    const watch = await startWatch();
    expect(fileHolds("Before")).toBe(true);
    await watch.stop();
  });

  test("a server answers through the database that watch has open", async () => {
    const watch = await startWatch();
    const server = await place.serve();
    await withCms((cms) => cms.execute(setTitle("Together")));
    await until("it to be served", async () => (await server.get(FREE, asShop)).text.includes('"Together"'));
    expect((await server.stop()).code).toBe(0);
    expect((await watch.stop()).code).toBe(0);
    expect(await withCms((cms) => cms.query(sql("SELECT count(*)::text FROM precast.apps")))).toEqual([["1"]]);
  });
});

test("each try to listen on a standby, which refuses, leaves nothing behind", async () => {
  const { signal } = new AbortController();
  const listen = () => Promise.reject(new Error("cannot execute LISTEN during recovery"));
  for (let tries = 0; tries < 3; tries++) {
    const watching = rebuildOnChange({ listen, build: async () => {}, onFailure: () => {}, stop: signal });
    await expect(watching).rejects.toThrow("during recovery");
  }
  expect(getEventListeners(signal, "abort")).toEqual([]);
});

describe("with --target", () => {
  beforeEach(() => settle("embedded"));
  afterEach(leave);

  test("each build is deployed, and what failed to be is deployed once it can be", async () => {
    const web = join(place.folder, "web");
    const target = pathToFileURL(web).href;
    const watch = place.start(`watch --target ${target} --quiet`);
    const same = () => differencesOf(readTree(web), out()).length === 0;
    await until("the tree to be deployed", () => existsSync(join(web, ".precast/x-53686f70.json")) && same());
    // A file in the place of the folder of parts fails every write.
    rmSync(join(web, ".precast/part"), { recursive: true, force: true });
    writeFileSync(join(web, ".precast/part"), "");
    await place.import(shopWithout(1));
    await watch.printed(/A build or its deploy failed and is retried until it succeeds\. /);
    rmSync(join(web, ".precast/part"));
    await watch.printed(/Publishing works again\./);
    await until("the edit to be deployed", same);
    expect(existsSync(join(web, SHOP_FOLDER, "posts", "entry", `${idOf(1)}.json`))).toBe(false);
    expect(await watch.stop()).toMatchObject({ code: 0 });
  });

  test("a target that is none is refused before anything is built", async () => {
    expect(await place.call("watch --target ftp://x")).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^ftp:\/\/x is not a valid target/),
    });
    expect(existsSync(out())).toBe(false);
  });
});
