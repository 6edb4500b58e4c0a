/** A logical replica is built, watched and queried like the original, whatever is written to the original. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { idOf, openPlace, type Place, readTree, SHOP, SHOP_FOLDER, shop } from "../support/cli.ts";
import { createDatabase, startPostgres, type TestServer } from "../support/postgres.ts";
import { rowsOf } from "../support/replica-set.ts";
import { until } from "../support/until.ts";

let servers: { readonly original: TestServer; readonly copy: TestServer };
let urls: { readonly original: string; readonly copy: string };
let original: Place;
let copy: Place;

beforeAll(async () => {
  servers = { original: await startPostgres({ settings: { wal_level: "logical" } }), copy: await startPostgres() };
  const make = (server: TestServer) => createDatabase(server.url("postgres"));
  urls = { original: await make(servers.original), copy: await make(servers.copy) };
  original = openPlace({ DATABASE_URL: urls.original });
  copy = openPlace({ DATABASE_URL: urls.copy });
  for (const place of [original, copy]) expect((await place.run("migrate")).code).toBe(0);
  await burn(urls.original);
  await original.import(shop());
  await replicate();
});
afterEach(async () => {
  await original.quit();
  await copy.quit();
});
afterAll(async () => {
  await original.close();
  await copy.close();
  await servers.original.remove();
  await servers.copy.remove();
});

/** Raises the transaction ids of the original far above those of the copy. */
async function burn(url: string): Promise<void> {
  await rowsOf(
    url,
    `CREATE TABLE burnt (number integer);
     DO $$ BEGIN FOR number IN 1..5000 LOOP
       BEGIN INSERT INTO burnt VALUES (number); EXCEPTION WHEN others THEN RAISE; END;
     END LOOP; END $$;
     DROP TABLE burnt`,
  );
}

/** Subscribes as with tables made by `pg_dump --schema-only`: those that `migrate` fills are emptied first. */
async function replicate(): Promise<void> {
  await rowsOf(urls.copy, "TRUNCATE precast.migrations, precast.html_entities");
  await rowsOf(urls.original, "CREATE PUBLICATION everything FOR ALL TABLES");
  const { port, pathname } = new URL(urls.original);
  const connection = `host=127.0.0.1 port=${port} user=postgres dbname=${pathname.slice(1)}`;
  await rowsOf(urls.copy, `CREATE SUBSCRIPTION copy CONNECTION '${connection}' PUBLICATION everything`);
  await until("the tables to be copied", async () => {
    const [row] = await rowsOf(urls.copy, "SELECT bool_and(srsubstate = 'r')::text AS ready FROM pg_subscription_rel");
    return row?.ready === "true";
  });
}

/** Resolves when the copy has what the original has now. */
async function brought(): Promise<void> {
  const [{ end } = { end: "" }] = await rowsOf(urls.original, "SELECT pg_current_wal_lsn()::text AS end");
  await until("the copy", async () => {
    const [row] = await rowsOf(
      urls.original,
      `SELECT (confirmed_flush_lsn >= '${end}')::text AS there FROM pg_replication_slots WHERE slot_name = 'copy'`,
    );
    return row?.there === "true";
  });
}

const POSTS = "(SELECT id FROM precast.content_types WHERE slug = 'posts')";
const post = (number: number) => `content_type_id = ${POSTS} AND id = '${idOf(number)}'`;

/** Builds the original in full and the copy incrementally: the trees are equal, and so are live answers of the copy. */
async function expectSame(): Promise<void> {
  await brought();
  await original.json("build --full");
  await copy.json("build");
  expect([...readTree(join(copy.folder, "out"))]).toEqual([...readTree(join(original.folder, "out"))]);
  expect((await copy.run("verify")).code).toBe(0);
}

/** Edits one entry of the original in this many transactions. */
async function edit(times: number): Promise<void> {
  const client = new Client({ connectionString: urls.original });
  await client.connect();
  for (let number = 0; number < times; number++)
    await client.query(`UPDATE precast.entries SET data = data || '{"category": "${number}"}' WHERE ${post(2)}`);
  await client.end();
}

test("writes to the original show in the tree and in the live answers of the copy", async () => {
  await expectSame();
  const add = (number: number) => `INSERT INTO precast.entries (content_type_id, id, status, published_at, data)
    VALUES (${POSTS}, '${idOf(number)}', 'published', '2026-02-0${number}', '{"title": "${number}", "price": ${number}}')`;
  const steps = [
    [`UPDATE precast.entries SET data = data || '{"title": "Renamed", "category": "News"}' WHERE ${post(2)}`, add(7)],
    [
      `UPDATE precast.entries SET status = 'draft' WHERE ${post(1)}`,
      `UPDATE precast.entries SET id = '${idOf(8)}' WHERE ${post(7)}`,
    ],
    [
      `UPDATE precast.entries SET status = 'published' WHERE ${post(1)}`,
      `DELETE FROM precast.entries WHERE ${post(8)}`,
      add(9),
    ],
    [add(8), `UPDATE precast.content_types SET filterable_fields = '{title,category}' WHERE slug = 'posts'`],
    [
      `DELETE FROM precast.entries WHERE ${post(8)}`,
      "UPDATE precast.apps SET media_base_url = 'https://elsewhere.example.com'",
    ],
    ["UPDATE precast.content_types SET slug = 'people' WHERE slug = 'authors'"],
  ];
  for (const step of steps) {
    for (const statement of step) await rowsOf(urls.original, statement);
    await expectSame();
  }
});

test("the copy finds what the original deletes by a key, but in two tables that are short", async () => {
  const keyless = `SELECT relname FROM pg_class WHERE relnamespace = 'precast'::regnamespace AND relkind = 'r'
    AND NOT EXISTS (SELECT FROM pg_index WHERE indrelid = pg_class.oid AND indisprimary) ORDER BY relname`;
  expect(await rowsOf(urls.copy, keyless)).toEqual([{ relname: "entry_counts" }, { relname: "value_counts" }]);
  await rowsOf(urls.original, "DELETE FROM precast.content_types WHERE slug = 'people'");
  await brought();
  const terms = "SELECT content_type_id, term FROM precast.terms ORDER BY 1, 2";
  expect(await rowsOf(urls.copy, terms)).toEqual(await rowsOf(urls.original, terms));
});

test("250 edits of one entry, enough for counter rows to be added up, are replicated", async () => {
  await edit(250);
  await expectSame();
});

test.each([
  ["a build", () => copy.json("build")],
  ["keep_anew", () => rowsOf(urls.copy, "SELECT precast.keep_anew()::text")],
])("%s on the copy leaves adding up counter rows to the original", async (_, run) => {
  await edit(25);
  await brought();
  await run();
  // Adds up the rows that the 25 edits have left.
  await original.json("build");
  await expectSame();
});

test("an incremental build of the copy writes only the file that a replicated edit changes", async () => {
  await expectSame();
  await rowsOf(urls.original, `UPDATE precast.entries SET rich = '{"body": "<p>Other</p>"}' WHERE ${post(1)}`);
  await brought();
  const { apps } = await copy.json<{ apps: { key: string; written: number }[] }>("build");
  expect(apps).toMatchObject([{ key: SHOP, written: 1 }]);
  const status = await copy.json<{ apps: { tree: { current: boolean } }[] }>("status");
  expect(status.apps.map(({ tree }) => tree.current)).toEqual([true]);
});

test("the copy and the original each record their own tree", async () => {
  await expectSame();
  const trees = (url: string) => rowsOf(url, "SELECT tree::text FROM precast.trees");
  const [ours, theirs] = [await trees(urls.copy), await trees(urls.original)];
  expect([ours.length, theirs.length]).toEqual([1, 1]);
  expect(ours).not.toEqual(theirs);
});

test("watch on the copy builds a replicated edit", async () => {
  await expectSame();
  const watching = copy.start("watch --json");
  // The initial build is done.
  await watching.printed(/^\{.*\}$/m);
  await rowsOf(urls.original, `UPDATE precast.entries SET data = data || '{"title": "Seen"}' WHERE ${post(1)}`);
  const file = join(copy.folder, "out", SHOP_FOLDER, "posts", "entry", `${idOf(1)}.json`);
  await until("the file to hold it", () => readFileSync(file, "utf8").includes('"Seen"'));
  expect((await watching.stop()).code).toBe(0);
});

test("a replicated change of an app, a type, a field or an entry notifies listeners of the copy", async () => {
  await expectSame();
  const listener = new Client({ connectionString: urls.copy });
  await listener.connect();
  let heard = 0;
  listener.on("notification", () => {
    heard++;
  });
  await listener.query("LISTEN precast");
  for (const change of [
    "UPDATE precast.apps SET name = 'Renamed'",
    `UPDATE precast.content_types SET name = 'Renamed' WHERE slug = 'posts'`,
    "UPDATE precast.fields SET label = 'Renamed' WHERE name = 'title'",
    `UPDATE precast.entries SET updated_at = now() WHERE ${post(1)}`,
  ]) {
    await brought();
    const before = heard;
    await rowsOf(urls.original, change);
    await until(`${change} to be heard`, () => heard > before);
  }
  await listener.end();
});

test("an incremental build of the copy deletes the files of entries that were truncated", async () => {
  await expectSame();
  await rowsOf(urls.original, "TRUNCATE precast.entries");
  await expectSame();
  await original.import(shop());
});

// The last one: nothing is left after it.
test("watch on the copy builds when all content types of the original are truncated", async () => {
  await expectSame();
  const watching = copy.start("watch --json");
  await watching.printed(/^\{.*\}$/m);
  await rowsOf(urls.original, "TRUNCATE precast.content_types CASCADE");
  await until("the entries to be gone", () => !existsSync(join(copy.folder, "out", SHOP_FOLDER, "posts", "entry")));
  expect((await watching.stop()).code).toBe(0);
  await expectSame();
});
