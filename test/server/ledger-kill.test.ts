/**
 * Servers are killed while clients send counted requests, and the database is down now and then. The ledger then
 * matches what clients received: it has every complete answer, and beyond these at most the requests in progress.
 */
import { realpathSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { Agent, get } from "node:http";
import { basename, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { Client } from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { sql } from "../../shared/sql/query.ts";
import { randomFrom } from "../bench/random.ts";
import { idOf, openEmbeddedPlace, openPlace, type Place, type RunningServer, SHOP, shop } from "../support/cli.ts";
import { startPostgres, type TestServer } from "../support/postgres.ts";
import { openStore, type Store } from "../support/site.ts";
import { until } from "../support/until.ts";

const KILLER = pathToFileURL(join(import.meta.dirname, "../support/kill-at.mjs")).href;
const ENTRY = `/api/v1/posts/${idOf(1)}`;
const TARGETS = [
  ["list", "/api/v1/posts?per_page=1"],
  ["list", "/api/v1/posts?per_page=2"],
  ["list", "/api/v1/posts?per_page=0"],
  ["list", "/api/v1/posts?filter[category]=News&page=1"],
  ["populate", `${ENTRY}?populate=author_id`],
  ["populate", `/api/v1/posts/${idOf(9)}?populate=author_id`],
  ["search", "/api/v1/posts/search?q=one"],
  ["search", "/api/v1/posts/search"],
] as const;

/** What clients saw: complete answers by shape and status, and requests without a complete answer by shape. */
type Tally = { readonly received: Map<string, number>; readonly lost: Map<string, number> };

function newTally(): Tally {
  return { received: new Map(), lost: new Map() };
}

function add(map: Map<string, number>, key: string): void {
  map.set(key, (map.get(key) ?? 0) + 1);
}

function sum(map: ReadonlyMap<string, number>): number {
  return [...map.values()].reduce((total, count) => total + count, 0);
}

/** Sends one request after the other until one gets no complete answer: then the server is gone. */
async function askUntilGone(url: string, tally: Tally, first: number): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  for (let turn = first; ; turn++) {
    const [shape, target] = TARGETS[turn % TARGETS.length] ?? TARGETS[0];
    const status = await askOnce(url, target, agent);
    if (status !== null) add(tally.received, `${shape} ${status}`);
    else {
      add(tally.lost, shape);
      break;
    }
  }
  agent.destroy();
}

/** The status of the answer; null when it did not arrive completely. Rejects when a complete answer was not counted. */
function askOnce(url: string, target: string, agent: Agent): Promise<number | null> {
  return new Promise((resolve, reject) => {
    const asking = get(`${url}${target}`, { agent, headers: { "X-App-Key": SHOP } }, (answer) => {
      answer.resume();
      answer.on("error", () => {});
      answer.on("close", () => {
        if (!answer.complete) resolve(null);
        else if (answer.headers["x-request-counted"] === "true") resolve(answer.statusCode ?? 0);
        else reject(new Error(`${target} is answered ${answer.statusCode} and not counted`));
      });
    });
    asking.on("error", () => resolve(null));
  });
}

/** Received answers that the ledger lacks, and counts in it that no request explains, in words. */
function problemsOf({ received, lost }: Tally, ledger: ReadonlyMap<string, number>): string[] {
  const keys = new Set([...received.keys(), ...ledger.keys()]);
  const missing = [...keys].filter((key) => (received.get(key) ?? 0) > (ledger.get(key) ?? 0));
  const shapes = new Set([...keys].map((key) => key.split(" ")[0] ?? ""));
  const excess = [...shapes].filter(
    (shape) => ofShape(ledger, shape) - ofShape(received, shape) > (lost.get(shape) ?? 0),
  );
  return [
    ...missing.map((key) => `${key}: received ${received.get(key)}, in the ledger ${ledger.get(key) ?? 0}`),
    ...excess.map(
      (shape) =>
        `${shape}: in the ledger ${ofShape(ledger, shape)}, received ${ofShape(received, shape)}, lost ${lost.get(shape) ?? 0}`,
    ),
  ];
}

function ofShape(counts: ReadonlyMap<string, number>, shape: string): number {
  return sum(new Map([...counts].filter(([key]) => key.startsWith(`${shape} `))));
}

/** The counts that `precast usage` reports, by shape and status. */
async function usageOf(place: Place): Promise<Map<string, number>> {
  const { rows } = await place.json<{ rows: { app: string; shape: string; status: number; count: number }[] }>("usage");
  const counts = new Map<string, number>();
  for (const { app, shape, status, count } of rows) {
    expect(app).toBe(SHOP);
    counts.set(`${shape} ${status}`, (counts.get(`${shape} ${status}`) ?? 0) + count);
  }
  return counts;
}

/** Paths within the ledger's folder. */
async function journalsOf(place: Place): Promise<string[]> {
  const files = await readdir(join(place.folder, ".precast", "ledger"), { recursive: true });
  return files.filter((file) => file.endsWith(".ndjson"));
}

/** Runs a server until it has sent all journals that killed servers left behind. */
async function settle(place: Place): Promise<void> {
  const server = await place.serve();
  await until("all journals to be sent", async () => (await journalsOf(place)).length === 0);
  expect((await server.stop()).code).toBe(0);
}

describe("on PostgreSQL", () => {
  let postgres: TestServer;
  let store: Store;
  let place: Place;

  beforeAll(async () => {
    postgres = await startPostgres();
    store = await openStore("postgres", {}, postgres.url("postgres"));
    place = openPlace({ DATABASE_URL: store.url ?? "" });
    await place.import(shop());
    await place.build();
  });
  afterAll(async () => {
    await place.close();
    await store.close();
    await postgres.remove();
  });
  beforeEach(() => store.database.execute("DELETE FROM precast.usage; DELETE FROM precast.usage_batches"));
  afterEach(() => place.quit());

  test("the ledger matches what clients received after 24 servers are killed and the database crashes", async () => {
    const tally = newTally();
    const random = randomFrom(20260121);
    let killed = 0;

    async function killServers(count: number): Promise<void> {
      for (let turn = 0; turn < count || !tally.received.has("list 503"); turn++) {
        const server = await place.serve();
        const enough = sum(tally.received) + 1 + random.below(200);
        const clients = Array.from({ length: 6 }, () => askUntilGone(server.url, tally, random.below(TARGETS.length)));
        await until("some answers", () => sum(tally.received) >= enough);
        const { code } = await server.stop("SIGKILL");
        if (code === null) killed++;
        await Promise.all(clients);
      }
    }
    let over = false;
    async function crashDatabase(): Promise<void> {
      while (!over) {
        await sleep(1_000 + random.below(1_500));
        await postgres.stop("immediate");
        await sleep(random.below(700));
        await postgres.start();
      }
    }
    const crashing = crashDatabase();
    // Two servers at a time share the folder of journals.
    await Promise.all([killServers(12), killServers(12)]);
    over = true;
    await crashing;

    await settle(place);
    expect(killed).toBeGreaterThanOrEqual(24);
    expect(problemsOf(tally, await usageOf(place))).toEqual([]);
  });

  test("the ledger matches what clients received when a server is killed at each file operation in turn", async () => {
    const log = join(place.folder, "calls");
    const tried = await place.serve("", { NODE_OPTIONS: `--import=${KILLER}`, PRECAST_TEST_COUNT: log });
    await askThrough(tried, newTally());
    await tried.stop("SIGKILL");
    const calls = (await readFile(log, "utf8")).trim().split("\n");
    const sent = calls.findIndex((call) => /^main rm .*ledger/.test(call)) + 1;
    expect(calls.slice(0, sent).filter((call) => /^main write(Sync)? \d+$/.test(call))).toHaveLength(TARGETS.length);
    await settle(place);
    await store.database.execute("DELETE FROM precast.usage");

    const behind = newTally();
    const killedBehind = await place.serve("", {
      NODE_OPTIONS: `--import=${KILLER}`,
      PRECAST_TEST_KILL: `main:${sent}`,
    });
    await askThrough(killedBehind, behind);
    expect(await killedBehind.end()).toMatchObject({ code: null });
    await settle(place);
    expect(problemsOf(behind, await usageOf(place)), "killed before the removal of what was sent").toEqual([]);
    await store.database.execute("DELETE FROM precast.usage");

    const tally = newTally();
    const killed: number[] = [];
    const points = Array.from({ length: sent }, (_, index) => index + 1);
    async function killAtPoints(): Promise<void> {
      for (let point = points.shift(); point !== undefined; point = points.shift()) {
        const env = { NODE_OPTIONS: `--import=${KILLER}`, PRECAST_TEST_KILL: `main:${point}` };
        const server = await place.serve("", env).catch(() => null);
        if (server === null) continue;
        await askThrough(server, tally);
        if ((await server.stop()).code === null) killed.push(point);
      }
    }
    await Promise.all([killAtPoints(), killAtPoints()]);
    await settle(place);
    expect(killed.length).toBeGreaterThan(TARGETS.length);
    expect(problemsOf(tally, await usageOf(place))).toEqual([]);
  });

  test.runIf(process.platform === "linux")(
    "with --ledger-sync, a journal's directory entries are on disk before the first count is written to it",
    async () => {
      const log = join(place.folder, "calls-synced");
      const env = { NODE_OPTIONS: `--import=${KILLER}`, PRECAST_TEST_COUNT: log };
      const server = await place.serve("--ledger-sync --data-dir new/data", env);
      await server.get("/api/v1/posts?per_page=1", { appKey: SHOP });
      await server.stop();
      const calls = (await readFile(log, "utf8")).trim().split("\n");
      const atOf = (folder: string) => calls.lastIndexOf(`main fsync ${realpathSync(join(place.folder, folder))}`);
      const created = calls.findIndex((call) => /^main open .*\/ledger\/[^/]+\/[^/]+\.ndjson$/.test(call));
      const written = calls.findIndex((call) => /^main write \d+$/.test(call));
      expect(created).toBeGreaterThan(-1);
      const own = basename(dirname(calls[created] ?? ""));
      const journals = join(realpathSync(join(place.folder, "new/data/ledger")), own);
      expect(calls.lastIndexOf(`main fsync ${journals}`)).toBeGreaterThan(created);
      expect(calls.lastIndexOf(`main fsync ${journals}`)).toBeLessThan(written);
      for (const folder of ["new/data/ledger", "new/data", "new", "."]) {
        expect(atOf(folder)).toBeGreaterThan(-1);
        expect(atOf(folder)).toBeLessThan(written);
      }
    },
  );

  test.runIf(process.platform === "linux")(
    "counts that wait for the database are on disk soon, and so are their names",
    async () => {
      const log = join(place.folder, "calls-waiting");
      const server = await place.serve("--data-dir waiting", {
        NODE_OPTIONS: `--import=${KILLER}`,
        PRECAST_TEST_COUNT: log,
      });
      const client = new Client({ connectionString: store.url ?? "" });
      await client.connect();
      await client.query("BEGIN; LOCK TABLE precast.usage_batches IN ACCESS EXCLUSIVE MODE");
      await server.get("/api/v1/posts?per_page=1", { appKey: SHOP });
      const ledger = realpathSync(join(place.folder, "waiting", "ledger"));
      const folder = join(ledger, (await readdir(ledger))[0] as string);
      const journal = (await readdir(folder)).find((file) => file.endsWith(".ndjson"));
      const synced = `main fsync ${join(folder, journal as string)}`;
      const calls = async () => (await readFile(log, "utf8")).trim().split("\n");
      await until("the journal to be synced after the last count in it, and then its name", async () => {
        const made = await calls();
        const at = made.indexOf(synced);
        return (
          at > made.findLastIndex((call) => /^main write \d+$/.test(call)) &&
          made.lastIndexOf(`main fsync ${folder}`) > at
        );
      });
      await client.query("ROLLBACK");
      await client.end();
      await server.stop();
    },
  );

  /** Requests every target once, then waits until the server has sent its batch or is gone. */
  async function askThrough(server: RunningServer, tally: Tally): Promise<void> {
    let gone = false;
    void server.end().then(() => {
      gone = true;
    });
    const agent = new Agent({ keepAlive: true });
    for (const [shape, target] of TARGETS) {
      const status = await askOnce(server.url, target, agent);
      add(status === null ? tally.lost : tally.received, status === null ? shape : `${shape} ${status}`);
      if (status === null) break;
    }
    agent.destroy();
    const own = async () => (await journalsOf(place)).filter((file) => file.startsWith(`${server.pid}-`));
    await until("the batch to be sent", async () => gone || (await own()).length === 0);
  }

  test("a batch that the database commits after its server was killed is counted once", async () => {
    const tally = newTally();
    const server = await place.serve();
    const client = new Client({ connectionString: store.url ?? "" });
    await client.connect();
    await client.query("BEGIN; LOCK TABLE precast.usage IN ACCESS EXCLUSIVE MODE");
    const agent = new Agent({ keepAlive: true });
    for (const [shape, target] of TARGETS) add(tally.received, `${shape} ${await askOnce(server.url, target, agent)}`);
    agent.destroy();
    const waits = `SELECT 1 FROM pg_stat_activity
      WHERE wait_event_type = 'Lock' AND datname = current_database() AND query LIKE '%usage_batches%'`;
    await until("the batch to wait for the lock", async () => (await store.database.query(sql(waits))).length === 1);
    await server.stop("SIGKILL");
    await client.query("ROLLBACK");
    await until("the batch to be committed", async () => (await count(client, "usage_batches")) === 1);
    await client.end();

    await settle(place);
    expect(await usageOf(place)).toEqual(tally.received);
  });

  async function count(client: Client, table: string): Promise<number> {
    const { rows } = await client.query(`SELECT count(*)::int AS count FROM precast.${table}`);
    return rows[0].count;
  }
});

test("on the embedded database, the ledger matches what clients received after three servers are killed", async () => {
  const place = await openEmbeddedPlace();
  try {
    await place.import(shop());
    await place.build();
    const random = randomFrom(7);
    const tally = newTally();
    for (let turn = 0; turn < 3; turn++) {
      const server = await place.serve();
      const clients = [0, 1, 2, 3].map((first) => askUntilGone(server.url, tally, first));
      const enough = sum(tally.received) + 50;
      await until("answers", () => sum(tally.received) > enough);
      await sleep(random.below(1_200));
      await server.stop("SIGKILL");
      await Promise.all(clients);
    }
    await settle(place);
    expect(sum(tally.received)).toBeGreaterThan(100);
    expect(problemsOf(tally, await usageOf(place))).toEqual([]);
  } finally {
    await place.close();
  }
});
