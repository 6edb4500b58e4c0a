/** Read replicas: live queries go to a streaming replica that is recent enough, and other databases are refused. */
import { resolve } from "node:path";
import { Client } from "pg";
import { afterEach, describe, expect, inject, test } from "vitest";
import { openDatabase } from "../../cli/database.ts";
import { sql } from "../../shared/sql/query.ts";
import { openPlace, shop } from "../support/cli.ts";
import { createDatabase, dropDatabase } from "../support/postgres.ts";
import {
  asShop,
  caughtUp,
  FREE,
  openReplicaSet,
  rename,
  rowsOf,
  serve,
  TITLES,
  total,
} from "../support/replica-set.ts";
import { until } from "../support/until.ts";

const replicaSet = openReplicaSet();

/** The number of the server's connections whose latest query read content. A check of the replica's lag may follow. */
const contentQueries = async (url: string) =>
  (
    await rowsOf(
      url,
      `SELECT pid FROM pg_stat_activity WHERE application_name = 'precast' AND datname = current_database()
       AND query ~ 'counted\\.total|keys_with'`,
    )
  ).length;

test.each([
  ["watch", "", "cannot execute LISTEN during recovery"],
  ["build", "--out elsewhere", "cannot execute DELETE in a read-only transaction"],
  ["import", resolve("cli/demo"), "cannot execute INSERT in a read-only transaction"],
])("%s on a replica fails and tells the user to use the primary", async (command, line, why) => {
  const { code, stderr } = await replicaSet.place.run(`${command} ${line}`.trim(), {
    DATABASE_URL: replicaSet.urls.near,
  });
  expect([code, stderr]).toEqual([
    1,
    `The database is read-only (${why}). Use its primary server (--database-url, or DATABASE_URL).\n`,
  ]);
});

test("doctor --fix on a replica stops at the first refusal and tells the user to use the primary", async () => {
  const { primary, near } = replicaSet.urls;
  await rowsOf(primary, "CREATE TABLE precast.notes (body text); INSERT INTO precast.notes VALUES ('a'), ('a')");
  for (const name of ["first", "second"]) {
    const making = rowsOf(primary, `CREATE UNIQUE INDEX CONCURRENTLY ${name} ON precast.notes (body)`);
    await expect(making).rejects.toThrow("could not create unique index");
  }
  await caughtUp(replicaSet, near);
  const onReplica = { DATABASE_URL: near };
  const { code, stdout } = await replicaSet.place.run("doctor", onReplica);
  expect([code, stdout.match(/unfinished index/g)]).toEqual([2, ["unfinished index", "unfinished index"]]);
  expect(await replicaSet.place.run("doctor --fix", onReplica)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^The database is read-only \(.+\)\. Use its primary server .+\n$/),
  });
  await rowsOf(primary, "DROP TABLE precast.notes");
});

describe("a replica that is recent enough", () => {
  test("answers live requests, and the primary takes the counts", async () => {
    const before = await total(replicaSet);
    const server = await serve(replicaSet, [replicaSet.urls.near]);
    await server.ready(true);
    expect((await server.get("/api/v1/posts/search?q=one", asShop)).status).toBe(200);
    let pages = 0;
    await until("a query of a list to be the latest on the replica", async () => {
      pages++;
      expect((await server.get(`${TITLES}&page=${pages}`, asShop)).status).toBe(200);
      return (await contentQueries(replicaSet.urls.near)) > 0;
    });
    expect(await server.answered()).toEqual({ primary: 0, "replica-1": pages + 1 });
    expect(await contentQueries(replicaSet.urls.primary)).toBe(0);
    expect((await server.stop()).code).toBe(0);
    expect((await total(replicaSet)) - before).toBe(pages + 1);
    expect(server.told()).toEqual([]);
  });

  test("is also read for apps and content types when there is no tree", async () => {
    const server = await serve(replicaSet, [replicaSet.urls.near], "--out nowhere");
    await server.ready(true);
    expect((await server.get(FREE, asShop)).status).toBe(200);
    expect((await server.get(FREE, { appKey: "stranger" })).status).toBe(401);
    expect(await server.answered()).toEqual({ primary: 0, "replica-1": 3 });
  });

  test("shares the load with a second replica", async () => {
    const server = await serve(replicaSet, [replicaSet.urls.near, replicaSet.urls.other]);
    await server.ready(true, true);
    for (let page = 1; page <= 20; page++) await server.get(`${TITLES}&page=${page}`, asShop);
    const { primary: none, ...shares } = await server.answered();
    expect([none, Object.keys(shares)]).toEqual([0, ["replica-1", "replica-2"]]);
    for (const share of Object.values(shares)) expect(share).toBeGreaterThanOrEqual(5);
  });

  test("cancels a query that takes too long, and the query is not repeated on the primary", async () => {
    const server = await serve(replicaSet, [replicaSet.urls.near]);
    await server.ready(true);
    await whileLocked(async () => {
      const got = await server.get(TITLES, asShop);
      expect([got.status, got.json.error.code]).toEqual([504, "QUERY_TIMEOUT"]);
      expect([await waiting(replicaSet.urls.near), await waiting(replicaSet.urls.primary)]).toEqual([0, 0]);
    });
    expect(await server.title()).toBeTypeOf("string");
    expect((await server.answered()).primary).toBe(0);
  });

  test("cancels a query by itself, and the primary answers the request", async () => {
    const server = await serve(replicaSet, [replicaSet.urls.near]);
    await server.ready(true);
    await whileLocked(async (holder) => {
      const answer = server.get(TITLES, asShop);
      await until("the query to wait there", async () => (await waiting(replicaSet.urls.near)) === 1);
      await rowsOf(replicaSet.urls.near, `SELECT pg_cancel_backend(pid) FROM pg_stat_activity ${WAITING}`);
      await until("the query to wait on the primary", async () => (await waiting(replicaSet.urls.primary)) === 1);
      await holder.query("ROLLBACK");
      expect((await answer).status).toBe(200);
    });
    expect(await server.answered()).toEqual({ primary: 1, "replica-1": 0 });
    expect(server.told()).toEqual([]);
  });
});

test("a query that a recovery conflict cancels fails as unavailable, and the next query succeeds", async () => {
  const { primary, near } = replicaSet.urls;
  const settle = (setting: string) =>
    rowsOf(near, `ALTER SYSTEM ${setting}`).then(() => rowsOf(near, "SELECT pg_reload_conf()"));
  await settle("SET max_standby_streaming_delay = 0");
  const database = await openDatabase({ url: near, dataDir: "", queryTimeout: 30_000, connections: 1 });
  try {
    await rowsOf(primary, "CREATE TABLE passing AS SELECT 1 AS one");
    await caughtUp(replicaSet, near);
    const asked = database.query(sql("SELECT pg_sleep(30)::text FROM public.passing")).catch((error: unknown) => error);
    const runs = "SELECT 1 FROM pg_stat_activity WHERE query LIKE '%FROM public.passing' AND wait_event = 'PgSleep'";
    await until("the query to run", async () => (await rowsOf(near, runs)).length > 0);
    await rowsOf(primary, "DROP TABLE passing");
    expect(await asked).toMatchObject({ reason: "unavailable", code: "40001" });
    expect(await database.query(sql("SELECT 'well'"))).toEqual([["well"]]);
  } finally {
    await database.close();
    await settle("RESET max_standby_streaming_delay");
  }
});

const WAITING =
  "WHERE application_name = 'precast' AND wait_event_type = 'Lock' AND datname = current_database() AND state = 'active'";
const waiting = async (url: string) => (await rowsOf(url, `SELECT pid FROM pg_stat_activity ${WAITING}`)).length;

/** Locks the entries on the primary, and so on the replicas, which replay the lock. */
async function whileLocked(run: (holder: Client) => Promise<void>): Promise<void> {
  const holder = new Client({ connectionString: replicaSet.urls.primary });
  await holder.connect();
  try {
    await lockEverywhere(holder);
    await run(holder);
  } finally {
    await holder.end();
  }
}

async function lockEverywhere(holder: Client): Promise<void> {
  await holder.query("BEGIN; LOCK TABLE precast.entries IN ACCESS EXCLUSIVE MODE");
  // A commit makes the primary send its log up to there, the lock included.
  await rowsOf(replicaSet.urls.primary, "SELECT pg_logical_emit_message(true, 'test', '')");
  const held = `SELECT 1 FROM pg_locks JOIN pg_class ON pg_class.oid = relation
    WHERE relname = 'entries' AND mode = 'AccessExclusiveLock' AND granted`;
  await until("the lock to arrive", async () => (await rowsOf(replicaSet.urls.near, held)).length > 0);
}

test("a replica with another version of ICU is not used, because its indexes have the primary's order", async () => {
  const { primary, near } = replicaSet.urls;
  // Simulates another version of ICU, for sessions with a setting that the URL below makes.
  await rowsOf(
    primary,
    `SET allow_system_table_mods = on; ALTER FUNCTION pg_catalog.pg_collation_actual_version(oid) RENAME TO real_version;
    CREATE FUNCTION pg_catalog.pg_collation_actual_version(collation_id oid) RETURNS text LANGUAGE sql
    AS $$ SELECT coalesce(current_setting('test.icu', true), pg_catalog.real_version(collation_id)) $$`,
  );
  await caughtUp(replicaSet, near);
  const reordered = new URL(near);
  reordered.searchParams.set("options", "-c test.icu=1.1");
  const server = await serve(replicaSet, [reordered.href, near]);
  await server.ready(false, true);
  expect(await server.title()).toBeTypeOf("string");
  expect(await server.answered()).toEqual({ primary: 0, "replica-1": 0, "replica-2": 1 });
  expect(server.told()).toEqual([expect.stringMatching(/^Replica 1 .* is not used: it has a different ICU version/)]);
  await rowsOf(
    primary,
    `SET allow_system_table_mods = on; DROP FUNCTION pg_catalog.pg_collation_actual_version(oid);
    ALTER FUNCTION pg_catalog.real_version(oid) RENAME TO pg_collation_actual_version`,
  );
});

describe("a replica that falls behind", () => {
  afterEach(() => rowsOf(replicaSet.urls.near, "SELECT pg_wal_replay_resume()"));

  test("is used only while its lag is within --max-replica-lag", async () => {
    await rename(replicaSet, "Old");
    await caughtUp(replicaSet, replicaSet.urls.near);
    const patient = await serve(replicaSet, [replicaSet.urls.near], "--max-replica-lag 3600");
    const strict = await serve(replicaSet, [replicaSet.urls.near], "--max-replica-lag 2");
    await Promise.all([patient.ready(true), strict.ready(true)]);
    await rowsOf(replicaSet.urls.near, "SELECT pg_wal_replay_pause()");
    await rename(replicaSet, "New");
    expect(await patient.title()).toBe("Old");

    await strict.ready(false);
    for (let time = 0; time < 10; time++) expect(await strict.title()).toBe("New");
    expect(await patient.title()).toBe("Old");
    expect((await strict.readyz()).json).toMatchObject({
      status: "ok",
      replicas: [{ ready: false, error: expect.stringMatching(/^its lag of \d+ s exceeds --max-replica-lag$/) }],
    });
    const series = async (name: string) => (await strict.metrics()).get(name)?.samples;
    expect(await series("precast_replica_ready")).toMatchObject([{ labels: { replica: "1" }, value: 0 }]);
    expect((await series("precast_replica_lag_seconds"))?.[0]?.value).toBeGreaterThan(2);

    await rowsOf(replicaSet.urls.near, "SELECT pg_wal_replay_resume()");
    await strict.ready(true);
    for (const server of [patient, strict]) expect(await server.title()).toBe("New");
    expect(await series("precast_replica_ready")).toMatchObject([{ value: 1 }]);
    expect(strict.told()).toEqual([
      expect.stringMatching(/^Replica 1 \(127.0.0.1:\d+\) is not used: its lag of \d+ s exceeds/),
      expect.stringMatching(/^Replica 1 .* answers live requests again\.$/),
    ]);
    expect(patient.told()).toEqual([]);
  });

  test("before the server starts is not used until it has caught up", async () => {
    await rename(replicaSet, "Before");
    await caughtUp(replicaSet, replicaSet.urls.near);
    await rowsOf(replicaSet.urls.near, "SELECT pg_wal_replay_pause()");
    await rename(replicaSet, "After");
    const server = await serve(replicaSet, [replicaSet.urls.near], "--max-replica-lag 3600");
    expect(await server.title()).toBe("After");
    expect((await server.readyz()).json.replicas[0].ready).toBe(false);
    await rowsOf(replicaSet.urls.near, "SELECT pg_wal_replay_resume()");
    await server.ready(true);
    expect(await server.title()).toBe("After");
    expect((await server.answered())["replica-1"]).toBe(1);
  });

  test("and lacks the current schema is not used until it has it", async () => {
    const url = await createDatabase(replicaSet.primary.url("postgres"));
    const copy = replicaSet.near.url(new URL(url).pathname.slice(1));
    await caughtUp(replicaSet, replicaSet.near.url("postgres"));
    await rowsOf(replicaSet.urls.near, "SELECT pg_wal_replay_pause()");
    const remote = openPlace({ DATABASE_URL: url });
    try {
      await remote.run("migrate");
      await remote.import(shop());
      const server = await remote.serve(`--read-database-url ${copy}`);
      await server.printed(/Replica 1 .* is not used: it lacks the current schema of Precast\./);
      expect((await server.get(TITLES, asShop)).status).toBe(200);
      await rowsOf(replicaSet.urls.near, "SELECT pg_wal_replay_resume()");
      await server.printed(/Replica 1 .* answers live requests again\./);
      let page = 1;
      await until("a query of a list to be the latest on the replica", async () => {
        page++;
        expect((await server.get(`${TITLES}&page=${page}`, asShop)).status).toBe(200);
        return (await contentQueries(copy)) === 1;
      });
    } finally {
      await remote.close();
      await dropDatabase(url);
    }
  });
});

describe("--read-database-url", () => {
  const refused = async (url: string) => {
    const { code, stdout, stderr } = await replicaSet.place.run(`serve --port 0 --read-database-url ${url}`);
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).not.toContain("secret");
    return stderr;
  };
  const withPassword = (url: string) => url.replace("postgres@", "postgres:secret@");
  const SENTENCE =
    /^Replica 1 \(127.0.0.1:\d+\) is not a copy of the database at --database-url\. --read-database-url accepts .*\n$/;

  test("refuses another server, and another database of a replica's server", async () => {
    expect(await refused(withPassword(inject("postgresUrl")))).toMatch(SENTENCE);
    expect(await refused(withPassword(replicaSet.near.url("postgres")))).toMatch(SENTENCE);
  });

  test("is refused with the embedded database, which has no replicas", async () => {
    const { code, stderr } = await replicaSet.place.run(`serve --port x --read-database-url ${replicaSet.urls.near}`, {
      DATABASE_URL: "",
    });
    expect(code).toBe(1);
    expect(stderr.trimEnd().split("\n").sort()).toEqual([
      expect.stringMatching(/^--port must be/),
      "--read-database-url needs --database-url: the embedded database has no replicas",
    ]);
  });

  test("takes several URLs, separated by blanks, from the environment, and checks each", async () => {
    const server = await serve(replicaSet, [], "", {
      PRECAST_READ_DATABASE_URL: `${replicaSet.urls.near} ${replicaSet.urls.other}`,
    });
    await server.ready(true, true);
    const { code, stderr } = await replicaSet.place.run("serve", {
      PRECAST_READ_DATABASE_URL: `${replicaSet.urls.near} mysql://x`,
    });
    expect([code, stderr]).toEqual([1, "PRECAST_READ_DATABASE_URL must begin with postgres:// or postgresql://\n"]);
  });

  test("accepts the primary itself", async () => {
    const server = await serve(replicaSet, [replicaSet.urls.primary]);
    await server.ready(true);
    await server.title();
    expect(await server.answered()).toEqual({ primary: 0, "replica-1": 1 });
  });
});
