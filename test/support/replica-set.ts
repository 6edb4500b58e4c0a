/** A primary with two streaming replicas, the shop in their database, and servers that read from the replicas. */
import { Client } from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, expect } from "vitest";
import { idOf, openPlace, type Place, type RunningServer, SHOP, shop } from "./cli.ts";
import { type Family, readExposition } from "./exposition.ts";
import { startPostgres, type TestServer } from "./postgres.ts";
import { ask, openStore } from "./site.ts";
import { until } from "./until.ts";

export const asShop = { appKey: SHOP };
export const FREE = "/api/v1/posts";
/** Counted, and so always answered live. */
export const TITLES = "/api/v1/posts?fields=title";

export type ReplicaSet = {
  readonly primary: TestServer;
  readonly near: TestServer;
  readonly other: TestServer;
  /** The URLs of the shop's database on each of them. */
  readonly urls: { readonly primary: string; readonly near: string; readonly other: string };
  readonly place: Place;
};

/** Starts them for the tests of a file and removes them afterwards. Before each test the replicas catch up. */
export function openReplicaSet(): ReplicaSet {
  const replicaSet = {} as { -readonly [name in keyof ReplicaSet]: ReplicaSet[name] };
  let close = async () => {};

  beforeAll(async () => {
    const primary = await startPostgres();
    const [near, other] = [await primary.replicate(), await primary.replicate()];
    const store = await openStore("postgres", {}, primary.url("postgres"));
    const name = new URL(store.url ?? "").pathname.slice(1);
    const place = openPlace({ DATABASE_URL: store.url ?? "" });
    const urls = { primary: store.url ?? "", near: near.url(name), other: other.url(name) };
    Object.assign(replicaSet, { primary, near, other, urls, place });
    close = async () => {
      await place.close();
      await store.close();
      for (const server of [near, other, primary]) await server.remove();
    };
    await place.import(shop());
    await place.build();
  });
  beforeEach(async () => {
    for (const url of [replicaSet.urls.near, replicaSet.urls.other]) await caughtUp(replicaSet, url);
  });
  afterEach(() => replicaSet.place.quit());
  afterAll(() => close());
  return replicaSet;
}

export async function rowsOf(url: string, sql: string): Promise<Record<string, string>[]> {
  const client = new Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  return (await client.query(sql).finally(() => client.end())).rows;
}

/** Resolves when the replica has replayed everything that the primary has written so far. */
export async function caughtUp({ urls }: ReplicaSet, url: string): Promise<void> {
  const [{ end } = { end: "" }] = await rowsOf(urls.primary, "SELECT pg_current_wal_lsn()::text AS end");
  await until("the replica", async () => {
    const [row] = await rowsOf(url, `SELECT (pg_last_wal_replay_lsn() >= '${end}')::text AS there`);
    return row?.there === "true";
  });
}

/** Renames the first post, on the primary. */
export async function rename({ urls }: ReplicaSet, title: string): Promise<void> {
  await rowsOf(urls.primary, renaming(title));
}

export function renaming(title: string): string {
  return `UPDATE precast.entries SET data = data || '{"title": "${title}"}' WHERE id = '${idOf(1)}'
    AND content_type_id = (SELECT id FROM precast.content_types WHERE slug = 'posts')`;
}

export async function total({ place }: ReplicaSet): Promise<number> {
  return (await place.json<{ readonly total: number }>("usage")).total;
}

export type Server = RunningServer & {
  readonly readyz: () => ReturnType<typeof ask>;
  /** Resolves when `/readyz` reports these states of the replicas, in order. */
  readonly ready: (...ready: readonly boolean[]) => Promise<void>;
  readonly metrics: () => Promise<ReadonlyMap<string, Family>>;
  /** The number of live queries that each database has answered. */
  readonly answered: () => Promise<Record<string, number>>;
  /** The title of the first post, from a live answer. */
  readonly title: () => Promise<string>;
  /** The server's log messages about its replicas. */
  readonly told: () => readonly string[];
};

export async function serve(
  { place }: ReplicaSet,
  replicas: readonly string[],
  line = "",
  env: Record<string, string> = {},
): Promise<Server> {
  const flags = replicas.map((url) => `--read-database-url ${url}`).join(" ");
  const server = await place.serve(`--admin-port 0 ${flags} ${line}`, env);
  await server.printed(/Health and metrics: \S+\n/);
  const admin = /Health and metrics: (\S+)/.exec(server.output().stdout)?.[1] ?? "";
  const readyz = () => ask(admin, "/readyz");
  const metrics = async () => readExposition(await (await fetch(`${admin}/metrics`)).text());
  return {
    ...server,
    readyz,
    ready: (...ready) =>
      until(`replicas that are ${ready}`, async () => {
        const now: { ready: boolean }[] = (await readyz()).json.replicas;
        return JSON.stringify(now.map((one) => one.ready)) === JSON.stringify(ready);
      }),
    metrics,
    answered: async () => {
      const samples = (await metrics()).get("precast_live_queries_total")?.samples ?? [];
      return Object.fromEntries(samples.map(({ labels, value }) => [labels.database, value]));
    },
    title: async () => {
      const { status, json } = await server.get(TITLES, asShop);
      expect(status).toBe(200);
      return json.data[0].title;
    },
    told: () => {
      const lines = server
        .output()
        .stderr.split("\n")
        .filter((text) => text.includes("Replica "));
      return lines.map((text) => JSON.parse(text).msg);
    },
  };
}
