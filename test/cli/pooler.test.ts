/**
 * Precast behind PgBouncer: in session mode commands work as they do when they connect to the server itself, and what
 * cannot work in transaction mode says so.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import { expect, test } from "vitest";
import { idOf, openPlace, type Place, SHOP, shop } from "../support/cli.ts";
import { findProgram, freePort, type Running, startProgram } from "../support/edge-program.ts";
import { openStore } from "../support/site.ts";
import { until } from "../support/until.ts";

const BOUNCER = findProgram("pgbouncer");
/** PgBouncer refuses to run as root: it reads its settings, and then switches to this user. */
const AS: readonly string[] = process.getuid?.() === 0 ? ["-u", "nobody"] : [];

type PoolerOptions = { readonly size?: number; readonly mode?: "session" | "transaction" };

async function startPooler(
  { folder }: Place,
  database: URL,
  { size = 20, mode = "session" }: PoolerOptions = {},
): Promise<Running> {
  const port = await freePort();
  const file = join(folder, "pgbouncer.ini");
  const { hostname, username, pathname } = database;
  const settings = [
    ...["[databases]", `* = host=${hostname} port=${database.port} user=${username}`],
    ...["[pgbouncer]", "listen_addr = 127.0.0.1", `listen_port = ${port}`, "unix_socket_dir =", "auth_type = any"],
    ...[`pool_mode = ${mode}`, `default_pool_size = ${size}`],
  ];
  writeFileSync(file, `${settings.join("\n")}\n`);
  const url = `postgres://${username}@127.0.0.1:${port}${pathname}`;
  const { stop } = await startProgram(BOUNCER as string, [...AS, file], port, folder, () => takesConnections(url));
  return { url, stop };
}

function takesConnections(url: string): Promise<boolean> {
  const client = new Client({ connectionString: url });
  return client.connect().then(
    () => client.end().then(() => true),
    () => false,
  );
}

test.skipIf(BOUNCER === null)(
  "build, serve, usage, explain, verify and doctor work through a pooler in session mode",
  async () => {
    const store = await openStore("postgres");
    const place = openPlace();
    const pooler = await startPooler(place, new URL(store.url as string));
    try {
      const env = { DATABASE_URL: pooler.url };
      const live = `/api/v1/posts/${idOf(1)}?populate=author_id`;
      await place.import(shop(), env);
      expect((await place.run("build", env)).code).toBe(0);
      const served = await place.serve("", env);
      expect(await served.get(live, { appKey: SHOP })).toMatchObject({ status: 200 });
      expect(await served.get("/api/v1/posts/search?q=an", { appKey: SHOP })).toMatchObject({ status: 200 });
      expect(await served.stop()).toMatchObject({ code: 0, stderr: "" });
      expect(await place.json("usage", env)).toMatchObject({ total: 2 });
      expect((await place.run(`explain ${live} --app ${SHOP}`, env)).stdout).toMatch(/^Plan +planned in /m);
      expect((await place.run("verify", env)).code).toBe(0);
      expect([0, 2]).toContain((await place.run("doctor", env)).code);
    } finally {
      await place.close();
      await pooler.stop();
      await store.close();
    }
  },
);

test.skipIf(BOUNCER === null)(
  "a server with --connections above the size of the pool still answers every request",
  async () => {
    const store = await openStore("postgres");
    const place = openPlace();
    const pooler = await startPooler(place, new URL(store.url as string), { size: 2 });
    try {
      const env = { DATABASE_URL: pooler.url };
      await place.import(shop(), env);
      const served = await place.serve("--connections 10 --memory-cache 0", env);
      const ask = async (size: number) => (await served.get(`/api/v1/posts?per_page=${size}`, { appKey: SHOP })).status;
      for (let round = 0; round < 3; round++) {
        expect(new Set(await Promise.all([1, 2, 3, 4, 5, 6, 7, 8].map(ask)))).toEqual(new Set([200]));
      }
      await served.stop();
    } finally {
      await place.close();
      await pooler.stop();
      await store.close();
    }
  },
);

test.skipIf(BOUNCER === null)(
  "watch hears changes through a pooler in session mode, and ends when one in transaction mode swallows them",
  async () => {
    const store = await openStore("postgres");
    const place = openPlace();
    const poolers: Running[] = [];
    try {
      await place.import(shop(), { DATABASE_URL: store.url as string });
      const start = async (mode: "session" | "transaction") => {
        const pooler = await startPooler(place, new URL(store.url as string), { mode });
        poolers.push(pooler);
        return place.start("watch --json", { DATABASE_URL: pooler.url });
      };
      const builds = (watch: { output(): { stdout: string } }) => watch.output().stdout.split("\n").length - 1;

      const heard = await start("session");
      await until("the first build", () => builds(heard) === 1);
      await store.database.execute('UPDATE precast.entries SET data = data || \'{"title":"New"}\'');
      await until("the second build", () => builds(heard) === 2);
      await heard.stop();

      const swallowed = await (await start("transaction")).end();
      expect([swallowed.code, swallowed.stdout]).toEqual([1, ""]);
      expect(swallowed.stderr).toMatch(/does not announce changes on this connection: .*session pooling\n$/);
    } finally {
      await place.close();
      for (const pooler of poolers) await pooler.stop();
      await store.close();
    }
  },
);
