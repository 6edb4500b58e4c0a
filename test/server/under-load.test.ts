/**
 * The server as a process under load while its PostgreSQL is stopped, killed, frozen and started again: free answers
 * stay as they are, live ones are refused cleanly and come back, and no connection or query is left behind.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type Activity, openActivity } from "../support/activity.ts";
import { openPlace, type Place, type RunningServer } from "../support/cli.ts";
import { COUNTED, FREE, GOODS, KEY } from "../support/goods.ts";
import { createDatabase, startPostgres, type TestServer } from "../support/postgres.ts";
import type { ReceivedAnswer } from "../support/site.ts";
import { until } from "../support/until.ts";

const CONNECTIONS = 3;
/** More different live requests than may run and wait at once. */
const LIVE = [...COUNTED, ...Array.from({ length: 9 }, (_, index) => `/api/v1/goods?per_page=${index + 2}`)];

let postgres: TestServer;
let url: string;
let place: Place;
let server: RunningServer;
let load: Load;

beforeAll(async () => {
  postgres = await startPostgres();
  url = await createDatabase(postgres.url("postgres"));
  place = openPlace({ DATABASE_URL: url });
  await place.run("migrate");
  await place.import(GOODS);
  await place.build();
  server = await place.serve(`--connections ${CONNECTIONS} --queue 4`);
  load = await startLoad();
});
afterAll(async () => {
  await load.stop();
  await place.close();
  await postgres.remove();
});

type Load = {
  /** How many answers of each kind there were: `200`, `503 OVERLOADED` … */
  readonly live: Readonly<Record<string, number>>;
  readonly free: () => number;
  /** Answers that no client should ever get. */
  readonly wrong: readonly string[];
  readonly counted: () => number;
  readonly stop: () => Promise<void>;
};

/** Starts clients that send one request after the other until `stop`. */
async function startLoad(): Promise<Load> {
  const bodies = new Map<string, string>();
  for (const target of FREE) bodies.set(target, described(await server.get(target, { appKey: KEY })));
  const live: Record<string, number> = {};
  const wrong: string[] = [];
  let [free, counted, stopped] = [0, 0, false];

  function take(target: string, got: ReceivedAnswer): void {
    if (got.headers["x-request-counted"] === "true") counted++;
    if (bodies.has(target)) {
      free++;
      if (described(got) !== bodies.get(target)) wrong.push(`${target}: ${described(got)}`);
      return;
    }
    const kind = got.status === 200 ? "200" : `${got.status} ${got.json.error.code}`;
    live[kind] = (live[kind] ?? 0) + 1;
    const refused = ["503 OVERLOADED", "503 DATABASE_UNAVAILABLE"].includes(kind);
    if (refused && got.headers["retry-after"] !== "1") wrong.push(`${target}: ${kind} without Retry-After`);
    if (!refused && !["200", "504 QUERY_TIMEOUT"].includes(kind)) wrong.push(`${target}: ${got.text}`);
  }
  async function visit(targets: readonly string[]): Promise<void> {
    for (let index = 0; !stopped; index++) {
      const target = targets[index % targets.length] as string;
      await server.get(target, { appKey: KEY }).then(
        (got) => take(target, got),
        (error: unknown) => wrong.push(`${target}: ${error}`),
      );
      // Leaves processor time to the server and the database.
      await sleep(2);
    }
  }
  // Each client begins with a different target.
  const visits = [
    ...[0, 5, 10].map((from) => visit([...FREE.slice(from), ...FREE.slice(0, from)])),
    ...LIVE.map((_, from) => visit([...LIVE.slice(from), ...LIVE.slice(0, from)])),
  ];
  const stop = async () => {
    stopped = true;
    await Promise.all(visits);
  };
  return { live, free: () => free, wrong, counted: () => counted, stop };
}

const described = ({ status, headers: { date: _, "x-request-id": __, ...headers }, text }: ReceivedAnswer) =>
  JSON.stringify([status, headers, text]);

/** Resolves when so many more live answers of this kind and so many more free answers have arrived. */
async function more(kind: string, count = 50): Promise<void> {
  const [live, free] = [load.live[kind] ?? 0, load.free()];
  await until(`${count} more of ${kind}`, () => (load.live[kind] ?? 0) >= live + count && load.free() >= free + count);
}

describe("a PostgreSQL under load", () => {
  test.each([
    ["stopped", () => postgres.stop("fast"), () => postgres.start()],
    ["crashed", () => postgres.stop("immediate"), () => postgres.start()],
    ["frozen", async () => postgres.pause(), async () => postgres.resume()],
    ["killed", () => postgres.kill(), () => postgres.start()],
    ["frozen and then crashed", async () => postgres.pause(), () => postgres.stop("immediate").then(postgres.start)],
  ])("that is %s: live requests get 503 until it is back, and free answers do not change", async (_, away, back) => {
    await more("200");
    await away();
    await more("503 DATABASE_UNAVAILABLE");
    await back();
    await more("200");
    expect(load.wrong).toEqual([]);
  });

  test("that drops all connections repeatedly: live requests are answered again each time", async () => {
    const client = new Client({ connectionString: url });
    await client.connect();
    for (let round = 0; round < 5; round++) {
      await more("200", 20);
      await client.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'precast%' AND pid <> pg_backend_pid()",
      );
    }
    await more("200");
    await client.end();
    expect(load.wrong).toEqual([]);
  });

  test("that is read-only, as during a failover: live requests are still answered", async () => {
    const client = new Client({ connectionString: url });
    await client.connect();
    const setReadOnly = async (value: string) => {
      await client.query(`ALTER SYSTEM SET default_transaction_read_only = ${value}`);
      await client.query("SELECT pg_reload_conf()");
    };
    await setReadOnly("on");
    const before = { ...load.live };
    await more("200");
    await setReadOnly("off");
    await client.end();
    expect(load.live["504 QUERY_TIMEOUT"]).toBe(before["504 QUERY_TIMEOUT"]);
    expect(load.wrong).toEqual([]);
  });

  test("that is slow is not treated as unavailable", async () => {
    const activity = await openActivity(url);
    onTestFinished(activity.close);
    await activity.lock();
    const before = load.live["503 DATABASE_UNAVAILABLE"] ?? 0;
    await more("504 QUERY_TIMEOUT", 1);
    expect(await activity.connections()).toBeLessThanOrEqual(CONNECTIONS + 1);
    await activity.unlock();
    await more("200");
    expect(load.live["503 DATABASE_UNAVAILABLE"] ?? 0).toBe(before);
  });

  test("has no connection or query left after the load, and the ledger has every counted answer", async () => {
    await load.stop();
    const activity: Activity = await openActivity(url);
    onTestFinished(activity.close);
    expect(await activity.connections()).toBeLessThanOrEqual(CONNECTIONS + 1);
    await activity.runs(0);
    expect(await server.get("/api/v1/goods?per_page=1", { appKey: KEY })).toMatchObject({ status: 200 });
    const { code, stderr } = await server.stop();
    expect(code).toBe(0);
    // Only lines of the log: neither an unhandled rejection nor a warning from Node.
    const lines = stderr.split("\n").filter((line) => line !== "");
    const logged = lines.map((line) => JSON.parse(line) as { readonly level: string; readonly msg: string });
    const warned = logged.filter(({ level }) => level !== "error").map(({ msg }) => msg);
    const back = warned.filter((msg) => msg === "The database answers again.");
    const away = warned.filter((msg) =>
      /^The database (does not answer|refuses the login) \(.*\)\. Live requests get 503 /.test(msg),
    );
    expect([back.length, away.length]).toEqual([warned.length / 2, warned.length / 2]);
    expect(back.length).toBeGreaterThan(0);
    expect(stderr).not.toMatch(/unhandled|warning/i);
    await until("its connections to be closed", async () => (await activity.connections()) === 0);
    const [total] = await activity.query("SELECT sum(count)::int AS count FROM precast.usage");
    expect(total?.count).toBe(load.counted() + 1);
    expect(load.wrong).toEqual([]);
  });
});
