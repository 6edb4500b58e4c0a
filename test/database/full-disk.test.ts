/** A database on a full disk reports that, keeps its data, and accepts writes again when there is space. */
import { chownSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, inject, onTestFinished, test } from "vitest";
import { openDatabase } from "../../cli/database.ts";
import { openLedger } from "../../server/ledger/ledger.ts";
import type { Database } from "../../shared/database/database.ts";
import { sql } from "../../shared/sql/query.ts";
import { openPlace, type Place, SHOP, shop, shopWithout } from "../support/cli.ts";
import { writeBundle } from "../support/content.ts";
import { type Disk, openDisk } from "../support/disk.ts";
import { copyEmbedded } from "../support/migrated.ts";
import { createDatabase, dropDatabase } from "../support/postgres.ts";
import { rowsOf } from "../support/replica-set.ts";
import { NO_DISK, unlessLacking } from "../support/root.ts";
import { until } from "../support/until.ts";

const open = (dataDir: string) => openDatabase({ url: null, dataDir, queryTimeout: null, connections: 1, share: true });
/** Free megabytes: too few for the database to begin a write, enough for what these tests write. */
const LITTLE = 20;
/** Free megabytes: enough to begin a write, and for two files of the write-ahead log. */
const SOME = 40;

const WORDS =
  /^The embedded database in .* cannot be written to because its disk is full\. The existing data is intact\. Free /;

const write = sql("INSERT INTO public.notes VALUES ('a')");

describe.skipIf(NO_DISK !== null)(unlessLacking(NO_DISK, "on a full disk"), () => {
  let disk: Disk;
  beforeEach(() => {
    disk = openDisk(160);
  });
  afterEach(() => disk.remove());

  async function openOnDisk(): Promise<Database> {
    const data = join(disk.folder, "data");
    await copyEmbedded(data);
    const database = await open(data);
    await database.execute("CREATE TABLE public.notes (text text)");
    return database;
  }
  const count = async (database: Pick<Database, "query">) =>
    (await database.query(sql("SELECT count(*)::text FROM public.notes")))[0]?.[0];

  test("an embedded database refuses writes, answers reads, and accepts writes again when there is space", async () => {
    const database = await openOnDisk();
    disk.fill(LITTLE);
    await expect(database.execute(write.text)).rejects.toThrow(WORDS);
    await expect(database.transaction("write", (session) => session.query(write))).rejects.toThrow(WORDS);
    expect(await database.transaction("read", count)).toBe("0");
    disk.empty();
    await database.transaction("write", (session) => session.query(write));
    expect(await count(database)).toBe("1");
    await database.close();
  });

  test("an embedded database rolls back a transaction during which the disk fills up", async () => {
    const database = await openOnDisk();
    const writing = database.transaction("write", async (session) => {
      await session.query(write);
      disk.fill(LITTLE);
      await session.query(write);
    });
    await expect(writing).rejects.toThrow(WORDS);
    expect(await count(database)).toBe("0");
    await database.close();
  });

  const LOG = "pg_logical_emit_message(true, '', repeat('x', 1000000))";
  const ENDLESS = `DO $$ BEGIN FOR i IN 1..1000 LOOP PERFORM ${LOG}; COMMIT; END LOOP; END $$`;
  test.each([
    ["never ends", ENDLESS],
    ["fails", `SELECT ${LOG} FROM generate_series(1, 1000)`],
  ])("an embedded database accepts writes again after a statement that fills the disk and %s", async (_, script) => {
    const database = await openOnDisk();
    disk.fill(SOME);
    await expect(database.execute(script)).rejects.toThrow(WORDS);
    disk.empty();
    await database.transaction("write", (session) => session.query(write));
    expect(await count(database)).toBe("1");
    await database.close();
  });

  test("counted requests wait in the ledger until the database has disk space", async () => {
    const database = await openOnDisk();
    const errors: unknown[] = [];
    const ledger = await openLedger(database, {
      folder: join(disk.folder, "ledger"),
      now: () => new Date(),
      onError: (error) => void errors.push(error),
    });
    disk.fill(LITTLE);
    expect(await ledger.count({ app: "a", shape: "list", status: 200, saving: "" })).toBe(true);
    await until("the ledger to be refused", () => errors.length > 0);
    expect(String(errors[0])).toMatch(/cannot be written to because its disk is full/);
    expect(ledger.backlog().requests).toBe(1);
    disk.empty();
    await until("the count to be sent", () => ledger.backlog().requests === 0);
    expect(await database.query(sql("SELECT count::text FROM precast.usage"))).toEqual([["1"]]);
    await ledger.close();
    await database.close();
  });

  describe("a server on the embedded database", () => {
    let place: Place;
    let data: string;
    beforeEach(async () => {
      data = join(disk.folder, "data");
      await copyEmbedded(data);
      place = openPlace({ PRECAST_DATA_DIR: data });
    });
    afterEach(() => place.close());

    test("an import beside it reports the full disk, and the server still answers the old content", async () => {
      await place.import(shop());
      const server = await place.serve();
      const list = () => server.get("/api/v1/posts?per_page=1", { appKey: SHOP });
      disk.fill(LITTLE);
      const bundle = join(place.folder, "bundle");
      await writeBundle(bundle, shopWithout(1));
      const { code, stdout, stderr } = await place.run(`import ${bundle}`);
      expect([code, stdout]).toEqual([1, ""]);
      expect(stderr).toMatch(WORDS);
      expect((await list()).json.meta.total).toBe(3);
      disk.empty();
      expect(await place.run(`import ${bundle} --quiet`)).toMatchObject({ code: 0, stderr: "" });
      expect((await list()).json.meta.total).toBe(2);
      expect(await server.stop()).toMatchObject({ code: 0 });
    });

    test("the server stops on request while a statement of a guest is stuck", async () => {
      const server = await place.serve();
      const guest = await open(data);
      disk.fill(SOME);
      const stuck = guest.execute(ENDLESS).catch(() => "ended");
      await until("the disk to be full", () => disk.free() < LITTLE);
      expect(await server.stop()).toMatchObject({ code: 0 });
      expect(await stuck).toBe("ended");
      await guest.close();
    });
  });

  test("an import into PostgreSQL reports that the disk of the database is full", async () => {
    // PostgreSQL runs as another user when root has started it.
    const space = join(disk.folder, "space");
    mkdirSync(space);
    chownSync(space, 65534, 65534);
    const admin = inject("postgresUrl");
    await rowsOf(admin, `CREATE TABLESPACE small LOCATION '${space}'`);
    const url = await createDatabase(admin, "small", "TABLESPACE small");
    const place = openPlace({ DATABASE_URL: url });
    try {
      expect(await place.run("migrate")).toMatchObject({ code: 0 });
      const bundle = join(place.folder, "bundle");
      await writeBundle(bundle, shop());
      disk.fill(0);
      const { code, stdout, stderr } = await place.run(`import ${bundle}`);
      expect([code, stdout]).toEqual([1, ""]);
      expect(stderr).toMatch(
        /^The disk of the database is full \(.*\)\. Existing data is intact\. Free some space there /,
      );
    } finally {
      await place.close();
      await dropDatabase(url);
      await rowsOf(admin, "DROP TABLESPACE small");
    }
  });
});

test("an embedded database closes while a query runs endlessly, and can be opened again", async () => {
  const data = join(mkdtempSync(join(tmpdir(), "precast-test-")), "data");
  onTestFinished(() => rmSync(dirname(data), { recursive: true }));
  await copyEmbedded(data);
  const database = await open(data);
  const endless = database.transaction("read", (session) =>
    session.query(sql("SELECT count(*)::text FROM generate_series(1, 1000000000000)")),
  );
  const waits = database.query(sql("SELECT 1::text"));
  const refused = Promise.all([
    expect(endless).rejects.toMatchObject({ reason: "unavailable" }),
    expect(waits).rejects.toMatchObject({ reason: "unavailable" }),
  ]);
  await database.close();
  await refused;
  const next = await open(data);
  expect(await next.query(sql("SELECT 1::text"))).toEqual([["1"]]);
  await next.close();
});

test("removing the folder of an embedded database while a query runs does not end the process", async () => {
  const data = join(mkdtempSync(join(tmpdir(), "precast-test-")), "data");
  onTestFinished(() => rmSync(dirname(data), { recursive: true }));
  await copyEmbedded(data);
  const database = await open(data);
  await database.query(sql("SELECT 1::text"));
  // Runs longer than the time until free disk space is checked.
  const slow = database.query(sql("SELECT 'over' FROM pg_sleep(5)"));
  await sleep(500);
  rmSync(data, { recursive: true });
  expect(await slow).toEqual([["over"]]);
  await database.close();
});
