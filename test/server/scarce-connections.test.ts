/** A database allows fewer connections than the server may use: all requests are answered over those that it allows. */
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { openDatabase } from "../../cli/database.ts";
import type { Database } from "../../shared/database/database.ts";
import { DatabaseFault } from "../../shared/database/errors.ts";
import { sql } from "../../shared/sql/query.ts";
import { openActivity } from "../support/activity.ts";
import { GOODS, KEY } from "../support/goods.ts";
import { rowsOf } from "../support/replica-set.ts";
import { type ApiServer, loadBundles, openApiServer, openStore, type Store } from "../support/site.ts";
import { until } from "../support/until.ts";

const ROLE = `scarce_${Math.random().toString(36).slice(2)}`;
const CLIENTS = 8;
const EACH = 25;

let store: Store;
let database: Database;
let api: ApiServer;

beforeAll(async () => {
  store = await openStore("postgres", { queryTimeout: 5_000, connections: 10 });
  await loadBundles(store, [GOODS]);
  await store.database.execute(`CREATE ROLE ${ROLE} LOGIN; GRANT USAGE ON SCHEMA precast TO ${ROLE};
    GRANT SELECT ON ALL TABLES IN SCHEMA precast TO ${ROLE};
    GRANT INSERT, UPDATE, DELETE ON precast.usage, precast.usage_batches TO ${ROLE}`);
});
afterAll(async () => {
  await store.database.execute(`DROP OWNED BY ${ROLE}; DROP ROLE ${ROLE}`);
  await store.close();
});
beforeEach(async () => {
  const url = new URL(store.url as string);
  url.username = ROLE;
  database = await openDatabase({ url: url.href, dataDir: "", queryTimeout: 5_000, connections: 11 });
  // Without a tree and without a cache, each request runs a query.
  api = await openApiServer({ ...store, database }, join(store.folder, "nowhere"), { memory: 0 });
  return async () => {
    await api.close();
    await database.close();
    await endConnections();
  };
});

const allow = (connections: number) =>
  rowsOf(store.url as string, `ALTER ROLE ${ROLE} CONNECTION LIMIT ${connections}`);

/** Resolves when the connections are closed and no longer count towards the limit. */
const endConnections = () =>
  rowsOf(store.url as string, `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = '${ROLE}'`);

const ask = async (filter: string) => {
  const got = await api.get(`/api/v1/goods?per_page=1&filter[title]=${filter}`, { appKey: KEY });
  return got.status === 200 ? "answered" : got.json.error.code;
};

/** Each client sends one request after the other. No two requests of a crowd are equal, so none share a query. */
async function crowd(): Promise<string[]> {
  const one = async (_: unknown, client: number) => {
    const answers: string[] = [];
    for (let turn = 0; turn < EACH; turn++) answers.push(await ask(`${client}-${turn}`));
    return answers;
  };
  return (await Promise.all(Array.from({ length: CLIENTS }, one))).flat();
}

function talliesOf(answers: readonly string[]): Record<string, number> {
  const tallies: Record<string, number> = {};
  for (const answer of answers) tallies[answer] = (tallies[answer] ?? 0) + 1;
  return tallies;
}

test("all requests are answered when the role may open only two connections", async () => {
  await allow(2);
  const answers = await crowd();
  expect(talliesOf(answers)).toEqual({ answered: CLIENTS * EACH });
});

test("all requests are answered over open connections while no new one can be opened", async () => {
  await allow(3);
  await Promise.all([1, 2, 3].map(() => database.query(sql("SELECT pg_sleep(0.1)::text"))));
  await allow(0);
  expect(talliesOf(await crowd())).toEqual({ answered: CLIENTS * EACH });
});

test("requests that get no connection in time get OVERLOADED, as do all while the role may open none", async () => {
  await allow(1);
  const activity = await openActivity(store.url as string);
  await activity.lock();
  const asked = Promise.all(["a", "b", "c"].map(ask));
  expect(talliesOf(await asked)).toEqual({ QUERY_TIMEOUT: 1, OVERLOADED: 2 });
  await activity.unlock();
  expect(await ask("d")).toBe("answered");
  await activity.close();

  await allow(0);
  await endConnections();
  expect(talliesOf(await Promise.all(["e", "f", "g"].map(ask)))).toEqual({ OVERLOADED: 3 });
  await allow(-1);
  expect(await ask("h")).toBe("answered");
});

test("a query that is aborted while it waits for a connection ends then, and the connection goes to the next", async () => {
  await allow(1);
  const hanging = new AbortController();
  const held = database.query(sql("SELECT pg_sleep(60)::text"), hanging.signal).catch((error: unknown) => error);
  await until(
    "the query to hold the connection",
    () => database.connections().open === 1 && database.connections().idle === 0,
  );
  const waiting = new AbortController();
  const asked = database.query(sql("SELECT 1::text"), waiting.signal);
  waiting.abort();
  // The pool itself would give up seconds later, and the first query ends a minute later.
  await expect(asked).rejects.toMatchObject({
    reason: "overloaded",
    message: "the query was cancelled before it began",
  });
  hanging.abort();
  expect(await held).toBeInstanceOf(DatabaseFault);
  expect(await database.query(sql("SELECT 2::text"))).toEqual([["2"]]);
});
