/** Replicas and their primary go down and come back: clients see no failure while one database can answer. */
import { afterEach, describe, expect, onTestFinished, test } from "vitest";
import { holdPort, type RunningServer } from "../support/cli.ts";
import {
  asShop,
  caughtUp,
  FREE,
  openReplicaSet,
  rename,
  renaming,
  rowsOf,
  serve,
  TITLES,
  total,
} from "../support/replica-set.ts";
import { until } from "../support/until.ts";

const replicaSet = openReplicaSet();

/** Starts clients that send live requests until `stop`, which resolves to the statuses that they got. */
function startLoad(server: RunningServer): { readonly asked: () => number; readonly stop: () => Promise<Set<number>> } {
  const statuses = new Set<number>();
  let asked = 0;
  let stopping = false;
  const client = async (number: number) => {
    while (!stopping) {
      asked++;
      statuses.add((await server.get(`/api/v1/posts?per_page=${number}&page=${asked}`, asShop)).status);
    }
  };
  const clients = [1, 2, 3, 4].map(client);
  return {
    asked: () => asked,
    stop: async () => {
      stopping = true;
      await Promise.all(clients);
      return statuses;
    },
  };
}

/** The log tells that the replica went away and came back. On a busy machine it may seem to go away more than once. */
function expectTurns(told: readonly string[]): void {
  const turns = told.map((line) => (line.includes("is not used") ? "gone" : "back"));
  expect(turns.join(" ")).toMatch(/^gone back( gone back)*$/);
}

describe("a replica", () => {
  test.each([
    ["crashes", () => replicaSet.near.stop("immediate"), () => replicaSet.near.start()],
    ["freezes", async () => replicaSet.near.pause(), async () => replicaSet.near.resume()],
  ])("%s under load: all requests are answered, and it is used again once it is back", async (_, leave, comeBack) => {
    const server = await serve(replicaSet, [replicaSet.urls.near]);
    await server.ready(true);
    const load = startLoad(server);
    await until("some load", () => load.asked() > 50);
    await leave();
    await server.ready(false);
    const asked = load.asked();
    await until("more load", () => load.asked() > asked + 50);
    await comeBack();
    await server.ready(true);
    const { "replica-1": before = 0 } = await server.answered();
    await until("its answers", async () => ((await server.answered())["replica-1"] ?? 0) > before + 50);
    expect([...(await load.stop())]).toEqual([200]);
    expect(server.told()[0]).toMatch(/^Replica 1 \(127.0.0.1:\d+\) is not used: it does not answer/);
    expectTurns(server.told());
  });

  test("that refuses connections: all requests are answered", async () => {
    const { primary, near } = replicaSet.urls;
    const role = `reader_${Math.random().toString(36).slice(2)}`;
    await rowsOf(primary, `CREATE ROLE ${role} LOGIN IN ROLE pg_read_all_data`);
    await caughtUp(replicaSet, near);
    const url = new URL(near);
    url.username = role;
    const server = await serve(replicaSet, [url.href], "--memory-cache 0");
    await server.ready(true);
    const load = startLoad(server);
    await until("some load", () => load.asked() > 50);
    await rowsOf(primary, `ALTER ROLE ${role} CONNECTION LIMIT 0`);
    await caughtUp(replicaSet, near);
    await rowsOf(near, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '${role}'`);
    await server.ready(false);
    expect([...(await load.stop())]).toEqual([200]);
    await server.stop();
    await rowsOf(primary, `DROP ROLE ${role}`);
  });

  test("that is down at the start is reported once, without its password, and another replica answers", async () => {
    const held = await holdPort();
    await held.release();
    const server = await serve(replicaSet, [
      `postgres://reader:secret@127.0.0.1:${held.port}/none`,
      replicaSet.urls.near,
    ]);
    await server.ready(false, true);
    expect(await server.title()).toBeTypeOf("string");
    expect(await server.answered()).toEqual({ primary: 0, "replica-1": 0, "replica-2": 1 });
    const metrics = JSON.stringify([...(await server.metrics())]);
    const shown = [metrics, (await server.readyz()).text, ...Object.values(server.output())].join("\n");
    expect(shown).not.toContain("secret");
    expect(server.told()).toEqual([expect.stringMatching(/^Replica 1 .* does not answer .*ECONNREFUSED/)]);
  });
});

describe("while the primary is down", () => {
  afterEach(() => replicaSet.primary.start().catch(() => {}));

  test("replicas answer live requests, counts wait on disk, and free answers are unchanged", async () => {
    const before = await total(replicaSet);
    const server = await serve(replicaSet, [replicaSet.urls.near], "--data-dir own");
    await server.ready(true);
    const free = (await server.get(FREE, asShop)).text;
    await replicaSet.primary.stop("immediate");
    for (let page = 1; page <= 5; page++) expect((await server.get(`${TITLES}&page=${page}`, asShop)).status).toBe(200);
    expect((await server.get(FREE, asShop)).text).toBe(free);
    await until("the outage to show", async () => (await server.readyz()).json.status === "degraded");
    expect((await server.readyz()).json).toMatchObject({ database: { ready: false }, replicas: [{ ready: true }] });
    const isUp = async () => (await server.metrics()).get("precast_database_up")?.samples[0]?.value;
    await until("the outage in the metrics", async () => (await isUp()) === 0);
    expect(server.output().stderr).toMatch(/does not answer .* Only its replicas answer live requests until/);

    // A server that starts now finds only the replica.
    const late = await serve(replicaSet, [replicaSet.urls.near], "--data-dir late");
    expect(await late.title()).toBeTypeOf("string");
    expect(late.output().stderr).toContain("all others from its replicas");

    await replicaSet.primary.start();
    await until("the counts", async () => (await total(replicaSet)) - before === 6);
    await Promise.all([server.ready(true), late.ready(true)]);
  });

  test("a replica is not used until it has applied all of the log that it has received", async () => {
    const { primary, near } = replicaSet.urls;
    await rename(replicaSet, "Old");
    await caughtUp(replicaSet, near);
    const server = await serve(replicaSet, [near], "--max-replica-lag 2");
    await server.ready(true);
    await rowsOf(near, "SELECT pg_wal_replay_pause()");
    await rename(replicaSet, "New");
    const [log] = await rowsOf(primary, "SELECT pg_current_wal_lsn()::text AS end");
    const received = `SELECT 1 WHERE pg_last_wal_receive_lsn() >= '${log?.end}'`;
    await until("the log", async () => (await rowsOf(near, received)).length > 0);
    await replicaSet.primary.stop("immediate");
    // A server that starts now has never reached the primary.
    const late = await serve(replicaSet, [near], "--max-replica-lag 2 --data-dir late");
    for (const one of [server, late]) {
      await one.ready(false);
      expect((await one.get(TITLES, asShop)).status).toBe(503);
    }
    await rowsOf(near, "SELECT pg_wal_replay_resume()");
    for (const one of [server, late]) {
      await one.ready(true);
      expect(await one.title()).toBe("New");
    }
    await replicaSet.primary.start();
    await server.ready(true);
  });

  test("the other replica answers all requests when one replica goes down as well", async () => {
    const server = await serve(replicaSet, [replicaSet.urls.near, replicaSet.urls.other]);
    await server.ready(true, true);
    await replicaSet.primary.stop("immediate");
    const load = startLoad(server);
    await until("some load", () => load.asked() > 50);
    await replicaSet.near.stop("immediate");
    await server.ready(false, true);
    const asked = load.asked();
    await until("more load", () => load.asked() > asked + 50);
    expect([...(await load.stop())]).toEqual([200]);
    await replicaSet.primary.start();
    await replicaSet.near.start();
    await server.ready(true, true);
  });
});

describe("several workers", () => {
  test("all use the replica, and its changes of state are logged once, not by each worker", async () => {
    const server = await serve(replicaSet, [replicaSet.urls.near], "--workers 2");
    await server.ready(true);
    const load = startLoad(server);
    await until("some load", () => load.asked() > 50);
    expect((await server.answered()).primary).toBe(0);
    await replicaSet.near.stop("immediate");
    await server.ready(false);
    const asked = load.asked();
    await until("more load", () => load.asked() > asked + 50);
    await replicaSet.near.start();
    await server.ready(true);
    expect([...(await load.stop())]).toEqual([200]);
    expectTurns(server.told());
    expect((await server.stop()).code).toBe(0);
  });
});

test("serve --watch on a standby says that it cannot build, and builds once the standby is promoted", async () => {
  const standby = await replicaSet.near.replicate();
  onTestFinished(standby.remove);
  const url = standby.url(new URL(replicaSet.urls.primary).pathname.slice(1));
  const server = await replicaSet.place.serve("--watch", { DATABASE_URL: url });
  await server.printed(/The tree is not rebuilt until its database is a primary\. The database is read-only/);
  expect((await server.get(TITLES, asShop)).status).toBe(200);
  await rowsOf(url, "SELECT pg_promote()");
  await rowsOf(url, renaming("Promoted"));
  const free = async () => (await server.get(FREE, asShop)).json.data[0].title;
  await until("the tree to have it", async () => (await free()) === "Promoted");
  expect((await server.stop()).code).toBe(0);
  const told = server.output().stderr.split("until its database is a primary");
  expect(told).toHaveLength(2);
});

test("a replica that has more than the replica to which the primary failed over is not used", async () => {
  const successor = await replicaSet.primary.replicate();
  onTestFinished(successor.remove);
  await successor.stop();
  await rename(replicaSet, "Lost in the failover");
  // More than the successor writes during the test.
  await rowsOf(replicaSet.urls.primary, "SELECT pg_logical_emit_message(true, '', repeat(' ', 1000000))");
  await caughtUp(replicaSet, replicaSet.urls.near);
  await replicaSet.primary.stop();
  onTestFinished(replicaSet.primary.start);
  await successor.start();
  const url = successor.url(new URL(replicaSet.urls.primary).pathname.slice(1));
  await rowsOf(url, "SELECT pg_promote()");
  await rowsOf(url, renaming("By the successor"));
  const server = await serve(replicaSet, [replicaSet.urls.near], "", { DATABASE_URL: url });
  await server.ready(false);
  expect(await server.title()).toBe("By the successor");
  // Not even when the successor has written more than that.
  await rowsOf(url, "SELECT pg_logical_emit_message(true, '', repeat(' ', 2000000))");
  expect(await server.title()).toBe("By the successor");
  expect(server.told()).toEqual([expect.stringContaining("is not used: it has changes that the primary lacks")]);
});

// The promoted replica no longer follows the primary, so this test has to be the last.
test("a promoted replica is not used, and one that follows it is used only while the primary is down", async () => {
  const server = await serve(replicaSet, [replicaSet.urls.other]);
  await server.ready(true);
  await rowsOf(replicaSet.urls.other, "SELECT pg_promote()");
  await server.ready(false);
  await rename(replicaSet, "Afterwards");
  expect(await server.title()).toBe("Afterwards");
  expect(server.told()).toEqual([expect.stringMatching(/^Replica 1 .* is not used: it accepts writes/)]);

  // A server that follows the promoted one belongs to the same system, and is ahead of the primary.
  await rowsOf(replicaSet.urls.other, "SELECT pg_switch_wal()");
  const copy = await replicaSet.other.replicate();
  onTestFinished(copy.remove);
  const another = await serve(replicaSet, [copy.url(new URL(replicaSet.urls.primary).pathname.slice(1))]);
  await another.ready(false);
  await rename(replicaSet, "By the primary");
  expect(await another.title()).toBe("By the primary");
  const why = "it follows a promoted server instead of the primary";
  expect(another.told()).toEqual([expect.stringContaining(`is not used: ${why}.`)]);
  // While the primary is down, no other database can answer.
  await replicaSet.primary.stop();
  onTestFinished(replicaSet.primary.start);
  await another.ready(true);
  expect(await another.title()).toBeTypeOf("string");
});
