/** Checks the admin port: its paths, methods and address, and readiness as load balancers see it. */
import { once } from "node:events";
import { cpSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { Client } from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { openAdmin } from "../../server/admin.ts";
import { openMetrics } from "../../server/metrics.ts";
import {
  holdPort,
  openEmbeddedPlace,
  openPlace,
  type Place,
  type RunningServer,
  SHOP,
  shop,
  UNREACHABLE_URL,
} from "../support/cli.ts";
import { openDisk } from "../support/disk.ts";
import { NO_DISK, unlessLacking } from "../support/root.ts";
import { ask, ENGINES, openStore, type Store } from "../support/site.ts";
import { until } from "../support/until.ts";

let store: Store;
let place: Place;
let client: Client;

beforeAll(async () => {
  store = await openStore("postgres");
  place = openPlace({ DATABASE_URL: store.url ?? "" });
  client = new Client({ connectionString: store.url ?? "" });
  await client.connect();
  await place.import(shop());
  await place.build();
});
afterEach(async () => {
  await client.query("ROLLBACK");
  await place.quit();
});
afterAll(async () => {
  await place.close();
  await client.end();
  await store.close();
});

const AWAY = { DATABASE_URL: UNREACHABLE_URL };

async function start(line = "", env: Record<string, string> = {}, where = place) {
  const server = await where.serve(`--admin-port 0 ${line}`, env);
  await server.printed(/Health and metrics: \S+\n/);
  const admin = /Health and metrics: (\S+)/.exec(server.output().stdout)?.[1] ?? "";
  return { server, admin, get: (path: string, method = "GET") => ask(admin, path, { method }) };
}

const READY_TREE = { ready: true, apps: 1, built_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/) };
const NO_TREE = { ready: false, apps: 0, built_at: null };
const READY = { ready: true, error: null };

describe("/readyz", () => {
  test("reports ok with a tree and a database", async () => {
    const { get, server } = await start();
    const { status, json } = await get("/readyz");
    expect([status, json]).toEqual([
      200,
      { status: "ok", draining: false, tree: READY_TREE, database: READY, ledger: READY },
    ]);
    await server.stop();
  });

  test("reports degraded without the database; a free request is still answered", async () => {
    const { get, server } = await start("", AWAY);
    const { status, json } = await get("/readyz");
    const database = { ready: false, error: expect.stringContaining("ECONNREFUSED") };
    expect([status, json]).toEqual([
      200,
      { status: "degraded", draining: false, tree: READY_TREE, database, ledger: READY },
    ]);
    expect((await server.get("/api/v1/posts", { appKey: SHOP })).status).toBe(200);
    await server.stop();
  });

  test.each(ENGINES)("reports degraded without a tree, and ok as soon as one is built (%s)", async (engine) => {
    const remote = engine === "postgres" ? place : await openEmbeddedPlace();
    if (remote !== place) await remote.import(shop());
    const { get, server } = await start("--out new", {}, remote);
    const { status, json } = await get("/readyz");
    expect([status, json]).toEqual([
      200,
      { status: "degraded", draining: false, tree: NO_TREE, database: READY, ledger: READY },
    ]);
    await remote.build("new");
    expect((await get("/readyz")).json).toMatchObject({ status: "ok", tree: READY_TREE });
    await server.stop();
    if (remote !== place) await remote.close();
  });

  test("reports unavailable with neither tree nor database; /healthz still answers 200", async () => {
    const { get, server } = await start("--out nowhere", AWAY);
    const { status, json } = await get("/readyz");
    expect([status, json.status]).toEqual([503, "unavailable"]);
    expect((await get("/healthz")).status).toBe(200);
    // Nor does a tree count that the server does not use, because some of its files are only where it was deployed.
    const nowhere = join(place.folder, "nowhere");
    cpSync(join(place.folder, "out"), nowhere, { recursive: true });
    writeFileSync(join(nowhere, ".precast", "elsewhere.json"), "[]");
    expect((await server.get("/api/v1/posts", { appKey: SHOP })).status).toBe(503);
    expect((await get("/readyz")).json).toMatchObject({ status: "unavailable", tree: { ready: false } });
    await server.stop();
  });

  test("reports a database that hangs or lacks a table as not ready; concurrent requests share one query", async () => {
    const { get, server } = await start();
    await client.query("BEGIN; LOCK TABLE precast.apps IN ACCESS EXCLUSIVE MODE");
    const asked = await Promise.all(Array.from({ length: 20 }, () => get("/readyz")));
    for (const { status, json } of asked) {
      expect([status, json.status, json.database]).toEqual([
        200,
        "degraded",
        { ready: false, error: "no answer within 1 s" },
      ]);
    }
    const waiting = `SELECT count(*)::int AS count FROM pg_locks WHERE NOT granted AND relation = 'precast.apps'::regclass`;
    expect((await client.query(waiting)).rows).toEqual([{ count: 1 }]);
    await client.query("ALTER TABLE precast.apps RENAME TO elsewhere; COMMIT");
    await until("the missing table", async () => /does not exist/.test((await get("/readyz")).json.database.error));
    await client.query("ALTER TABLE precast.elsewhere RENAME TO apps");
    await until("the database", async () => (await get("/readyz")).json.status === "ok");
    await server.stop();
  });

  test("reports degraded while the folder of the ledger cannot take counts", async () => {
    const { get, server } = await start();
    const folder = join(place.folder, ".precast", "ledger");
    renameSync(folder, `${folder}-aside`);
    writeFileSync(folder, "");
    const { status, json } = await get("/readyz");
    const ledger = { ready: false, error: expect.stringContaining(join(".precast", "ledger")) };
    expect([status, json]).toMatchObject([200, { status: "degraded", database: READY, ledger }]);
    rmSync(folder);
    renameSync(`${folder}-aside`, folder);
    expect((await get("/readyz")).json).toMatchObject({ status: "ok", ledger: READY });
    await server.stop();
  });

  test.skipIf(NO_DISK !== null)(
    unlessLacking(NO_DISK, "reports degraded while the disk of the ledger is full"),
    async () => {
      const disk = openDisk(1);
      onTestFinished(disk.remove);
      const { get, server } = await start(`--data-dir ${disk.folder}`);
      expect((await get("/readyz")).json).toMatchObject({ status: "ok", ledger: READY });
      disk.fill(0);
      const error = `no space left on the disk of ${join(disk.folder, "ledger")}`;
      expect((await get("/readyz")).json).toMatchObject({ status: "degraded", ledger: { ready: false, error } });
      disk.empty();
      expect((await get("/readyz")).json).toMatchObject({ status: "ok", ledger: READY });
      await server.stop();
    },
  );

  test("reports unavailable while the server finishes an open request; /healthz still reports ok", async () => {
    const { get, server } = await start();
    await client.query("BEGIN; LOCK TABLE precast.entries IN ACCESS EXCLUSIVE MODE");
    const slow = server.get("/api/v1/posts?per_page=1", { appKey: SHOP });
    const waits = `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`;
    await until("the query", async () => (await client.query(waits)).rowCount === 1);
    const stopped = server.stop();
    await server.printed(/Stopping/);
    const { status, json } = await get("/readyz");
    expect([status, json]).toMatchObject([503, { status: "unavailable", draining: true, tree: READY_TREE }]);
    expect((await get("/healthz")).json).toEqual({ status: "ok" });
    await client.query("COMMIT");
    expect((await slow).status).toBe(200);
    expect((await stopped).code).toBe(0);
  });
});

describe("the admin port", () => {
  let server: RunningServer;
  let get: (path: string, method?: string) => ReturnType<typeof ask>;
  let admin: string;

  test("answers HEAD on its three paths and GET on /healthz; other methods get 405, other paths 404", async () => {
    ({ server, get, admin } = await start());
    for (const path of ["/healthz", "/readyz", "/metrics"]) {
      const got = await ask(admin, path, { method: "HEAD" });
      expect([got.status, got.text, got.headers["cache-control"]]).toEqual([200, "", "no-store"]);
      for (const method of ["POST", "DELETE", "OPTIONS"]) {
        const { status, headers, json } = await get(path, method);
        expect([status, headers.allow, json.error.code]).toEqual([405, "GET, HEAD", "METHOD_NOT_ALLOWED"]);
      }
    }
    expect((await get("/healthz?verbose")).json).toEqual({ status: "ok" });
    for (const path of ["/", "/metrics/", "/api/v1/_schemas", "//metrics", "/%6detrics"]) {
      const { status, headers, json } = await get(path);
      expect([status, headers["content-type"], json.error.code]).toEqual([
        404,
        "application/json; charset=utf-8",
        "NOT_FOUND",
      ]);
    }
    await server.stop();
  });

  test("is printed as JSON with --json, and is not announced without --admin-port", async () => {
    const told = await place.serve("--json --admin-port 0");
    const { stdout } = await told.stop();
    expect(JSON.parse(stdout)).toEqual({ url: told.url, admin: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/) });
    const none = await place.serve();
    expect((await none.stop()).stdout).not.toContain("Health");
  });

  test("listens on the address given by --admin-host", async () => {
    const { admin, server } = await start("--admin-host ::1");
    expect(admin).toMatch(/^http:\/\/\[::1\]:\d+$/);
    await server.stop();
  });

  test("makes serve exit with 1 and one line that names --admin-port when the port is in use", async () => {
    const held = await holdPort();
    const { code, stdout, stderr } = await place.run(`serve --port 0 --admin-port ${held.port} --log-level warn`);
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(/^[^\n]*admin port[^\n]*in use[^\n]*--admin-port[^\n]*\n$/);
    await held.release();
  });

  test("gathers the metrics a few times for a client that asks hundreds of times without waiting", async () => {
    const registry = openMetrics(() => 0);
    let gathered = 0;
    const metrics = () => {
      gathered++;
      return registry.text();
    };
    const unused = () => Promise.reject(new Error("not asked for"));
    const onError = (error: unknown) => expect.unreachable(String(error));
    const folders = { out: place.folder, ledgerFolder: place.folder };
    const state = { ...folders, database: { query: unused }, replicas: () => [] };
    const admin = await openAdmin({ ...state, metrics, onError, host: "127.0.0.1", port: 0 });
    onTestFinished(admin.close);
    const flood = connect(Number(new URL(admin.url).port), "127.0.0.1").setEncoding("utf8");
    onTestFinished(() => void flood.destroy());
    let received = "";
    flood.on("data", (text: string) => {
      received += text;
    });
    flood.write("GET /metrics HTTP/1.1\r\nHost: flood\r\n\r\n".repeat(300));
    await until("all answers", () => received.split("HTTP/1.1 200 OK").length - 1 === 300);
    expect(gathered).toBeLessThan(30);
  });

  test("does not keep the server from exiting while a client is connected to it", async () => {
    const { admin, server } = await start();
    const socket = connect(Number(new URL(admin).port), "127.0.0.1");
    socket.on("error", () => {});
    await once(socket, "connect");
    const closed = once(socket, "close");
    expect((await server.stop()).code).toBe(0);
    await closed;
  });
});
