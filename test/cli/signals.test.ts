/** What signals do to commands, also where one is the first process of a container. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { constants } from "node:os";
import { Client } from "pg";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { sql } from "../../shared/sql/query.ts";
import { NODE_ARGUMENTS, openPlace, type Place, shop } from "../support/cli.ts";
import { childrenOf, NAMESPACE, NO_NAMESPACE, unlessLacking } from "../support/root.ts";
import { openStore, type Store } from "../support/site.ts";
import { until } from "../support/until.ts";

let store: Store;
let place: Place;

beforeAll(async () => {
  store = await openStore("postgres");
  place = openPlace({ DATABASE_URL: store.url ?? "" });
  await place.import(shop());
});
afterAll(async () => {
  await place.close();
  await store.close();
});

test("SIGUSR1 opens no debugger, and SIGUSR2 ends nothing", async () => {
  const watch = place.start("watch");
  await watch.printed(/wrote/);
  process.kill(watch.pid, "SIGUSR1");
  process.kill(watch.pid, "SIGUSR2");
  await store.database.execute("UPDATE precast.entries SET updated_at = '2026-03-01'");
  await watch.printed(/wrote.*wrote/s);
  expect(await watch.stop("SIGTERM")).toMatchObject({ code: 0, stderr: "" });
});

test.skipIf(NO_NAMESPACE !== null).each(["SIGTERM", "SIGINT"] as const)(
  unlessLacking(NO_NAMESPACE, "%s ends a build that is the first process of a container"),
  async (signal) => {
    const client = new Client({ connectionString: store.url ?? "" });
    await client.connect();
    onTestFinished(() => client.end());
    await client.query("BEGIN; LOCK TABLE precast.apps IN ACCESS EXCLUSIVE MODE");
    const [program, ...words] = [...NAMESPACE, "--kill-child"];
    const build = spawn(program, [...words, process.execPath, ...NODE_ARGUMENTS, "build"], {
      cwd: place.folder,
      env: { ...process.env, DATABASE_URL: store.url ?? "" },
      stdio: "ignore",
    });
    onTestFinished(() => void build.kill("SIGKILL"));
    const ended = once(build, "exit");
    // In another session: a transaction sees the activity as it was when it first looked.
    const waiting = sql(
      "SELECT 1::text FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
    );
    await until("the build to wait for the lock", async () => (await store.database.query(waiting)).length > 0);
    const [first = 0] = childrenOf({ pid: build.pid as number });
    process.kill(first, signal);
    expect(await ended).toEqual([128 + constants.signals[signal], null]);
  },
);
