/** Databases restored from copies: commits that a tree contains may be lost, and transaction ids may be used again. */
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { readTreeStatus } from "../../cli/builder/delta.ts";
import { openDatabase } from "../../cli/database.ts";
import type { Database } from "../../shared/database/database.ts";
import { sql } from "../../shared/sql/query.ts";
import { readFiles, treeProblems } from "../support/build-problems.ts";
import { runBuild } from "../support/history.ts";
import { copyEmbedded } from "../support/migrated.ts";
import { startPostgres } from "../support/postgres.ts";
import { newPost, post, SHOP } from "../support/posts.ts";
import { rowsOf } from "../support/replica-set.ts";
import { MEDIA, openStore } from "../support/site.ts";
import { until } from "../support/until.ts";

const NOTES = `INSERT INTO precast.apps (key) VALUES ('notes');
INSERT INTO precast.content_types (app_id, slug) SELECT id, 'lines' FROM precast.apps WHERE key = 'notes';`;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "precast-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
});

const optionsFor = (out: string) => ({
  out,
  full: false,
  dryRun: false,
  mediaBaseUrl: MEDIA,
  now: () => new Date(),
});

async function build(database: Database, apps: readonly string[] | null = null): Promise<string[]> {
  const reports = await runBuild(database, { ...optionsFor(join(folder, "out")), apps });
  return reports.map(({ key, mode }) => `${key} ${mode}`);
}

/** Throws when the tree is not that of a full build. */
async function expectExact(database: Database): Promise<void> {
  const out = mkdtempSync(join(folder, "whole-"));
  await runBuild(database, { ...optionsFor(out), apps: null });
  expect(treeProblems(readFiles(out), readFiles(join(folder, "out")), out)).toEqual([]);
}

const retitle = (number: number, title: string) =>
  `UPDATE precast.entries SET data = data || '{"title": "${title}"}' WHERE ${post(number)}`;

test("a database restored from a copy of its files is built in full once, and incrementally from then on", async () => {
  const dataDir = join(folder, "data");
  const copy = join(folder, "copy");
  await copyEmbedded(dataDir);
  const use = async (run: (database: Database) => Promise<void>) => {
    const database = await openDatabase({ url: null, dataDir, queryTimeout: null, connections: 1 });
    await run(database).finally(database.close);
  };
  await use(async (database) => {
    await database.execute(SHOP + NOTES);
    expect(await build(database)).toEqual(["notes full", "shop full"]);
  });
  cpSync(dataDir, copy, { recursive: true });
  await use(async (database) => {
    await database.execute(retitle(1, "lost"));
    await database.execute("UPDATE precast.apps SET name = 'lost'");
    expect(await build(database)).toEqual(["notes incremental", "shop incremental"]);
    await database.execute(newPost(7));
    expect(await build(database)).toEqual(["notes incremental", "shop incremental"]);
  });
  rmSync(dataDir, { recursive: true });
  cpSync(copy, dataDir, { recursive: true });
  await use(async (database) => {
    await database.execute(retitle(2, "new"));
    // Each app is judged by its own state, whatever a build of another has found.
    expect(await build(database, ["shop"])).toEqual(["shop full"]);
    expect(await build(database, ["notes"])).toEqual(["notes full"]);
    await expectExact(database);
    await database.execute(retitle(3, "newer"));
    expect(await build(database)).toEqual(["notes incremental", "shop incremental"]);
    await expectExact(database);
  });
});

test("a standby promoted without the primary's last commits is built in full", async () => {
  const primary = await startPostgres();
  onTestFinished(primary.remove);
  const store = await openStore("postgres", {}, primary.url("postgres"));
  const standby = await primary.replicate();
  onTestFinished(standby.remove);
  await store.database.execute(SHOP);
  await build(store.database);
  const [row] = await store.database.query(sql("SELECT pg_current_wal_lsn()::text"));
  const name = new URL(store.url ?? "").pathname.slice(1);
  const rows = (text: string) => rowsOf(standby.url(name), text);
  await until("the standby has it all", async () => {
    const [seen] = await rows(`SELECT (pg_last_wal_replay_lsn() >= '${row?.[0]}')::text AS all`);
    return seen?.all === "true";
  });
  await standby.stop();
  await store.database.execute(retitle(1, "lost"));
  await build(store.database);
  await primary.kill();
  await store.database.close();
  await standby.start();
  await rows("SELECT pg_promote()");
  const options = { url: standby.url(name), dataDir: "", queryTimeout: null, connections: 4 };
  const database = await openDatabase(options);
  onTestFinished(database.close);
  // Right after the promotion, possibly before the first checkpoint of the promoted server.
  await database.execute(retitle(2, "new"));
  expect(await build(database)).toEqual(["shop full"]);
  await expectExact(database);
});

test("content restored from a dump of a server with higher transaction ids does not count as changed", async () => {
  const store = await openStore("postgres");
  onTestFinished(store.close);
  const { database } = store;
  await database.execute(SHOP);
  await database.execute(`ALTER TABLE precast.entries DISABLE TRIGGER stamp_entry;
    UPDATE precast.entries SET changed_in = '99999999999'; UPDATE precast.content_types SET begun_in = '99999999999';
    ALTER TABLE precast.entries ENABLE ALWAYS TRIGGER stamp_entry`);
  await build(database);
  const out = join(folder, "out");
  const [report] = await runBuild(database, { ...optionsFor(out), apps: null });
  expect(report).toMatchObject({ mode: "incremental", written: 0 });
  const standing = await database.transaction("read", (session) =>
    readTreeStatus(session, "shop", { out, mediaBaseUrl: MEDIA }),
  );
  expect(standing).toMatchObject({ changed: 0, redefined: [], current: true });
  await database.execute(retitle(1, "new"));
  expect(await build(database)).toEqual(["shop incremental"]);
  await expectExact(database);
});
