/** Precast behind Debian's PgBouncer, which lends connections by session: every command works as on the server itself. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import { expect, test } from "vitest";
import { idOf, openPlace, type Place, SHOP, shop } from "../support/cli.ts";
import { findProgram, freePort } from "../support/edge-program.ts";
import { openStore } from "../support/site.ts";
import { until } from "../support/until.ts";

const BOUNCER = findProgram("pgbouncer");
/** It does not run as root: it reads its settings, and then is somebody else. */
const AS: readonly string[] = process.getuid?.() === 0 ? ["-u", "nobody"] : [];

type Pooler = { readonly url: string; readonly stop: () => Promise<void> };

async function startPooler({ folder }: Place, database: URL): Promise<Pooler> {
  const port = await freePort();
  const file = join(folder, "pgbouncer.ini");
  const { hostname, username, pathname } = database;
  const settings = [
    ...["[databases]", `* = host=${hostname} port=${database.port} user=${username}`],
    ...["[pgbouncer]", "listen_addr = 127.0.0.1", `listen_port = ${port}`, "unix_socket_dir =", "auth_type = any"],
    "pool_mode = session",
  ];
  writeFileSync(file, `${settings.join("\n")}\n`);
  const child = spawn(BOUNCER as string, [...AS, file], { stdio: "ignore" });
  const url = `postgres://${username}@127.0.0.1:${port}${pathname}`;
  await until("PgBouncer to answer", async () => {
    if (child.exitCode !== null) throw new Error(`pgbouncer ended with ${child.exitCode}`);
    const client = new Client({ connectionString: url });
    return client.connect().then(
      () => client.end().then(() => true),
      () => false,
    );
  });
  const stop = async () => {
    const ended = once(child, "exit");
    child.kill("SIGINT");
    await ended;
  };
  return { url, stop };
}

test.skipIf(BOUNCER === null)("every command works through a pooler that lends connections by session", async () => {
  const store = await openStore("postgres");
  const place = openPlace();
  const pooler = await startPooler(place, new URL(store.url as string));
  try {
    const env = { DATABASE_URL: pooler.url };
    const live = `/api/v1/posts/${idOf(1)}?populate=author_id`;
    await place.take(shop(), env);
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
});
