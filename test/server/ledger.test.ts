/** Counted requests are counted: every one, once, however many come at a time and whatever becomes of server and database. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Ledger, openLedger } from "../../server/ledger.ts";
import { sql } from "../../shared/database/database.ts";
import { startPostgres, type TestServer } from "../support/postgres.ts";
import { openStore, type Store } from "../support/site.ts";

const DAY = "2026-01-20";
const now = () => new Date(`${DAY}T23:59:59.999Z`);

function open(store: Store, folder: string): Promise<Ledger> {
  return openLedger(store.database, { folder: join(store.folder, folder), machine: "test", now, onError: () => {} });
}

async function usage(store: Store): Promise<unknown[]> {
  return store.database.query(
    sql(
      "SELECT app_key, day::text, shape, status::text, count::text FROM precast.usage ORDER BY app_key, shape, status",
    ),
  );
}

describe("the ledger", () => {
  let server: TestServer;
  let store: Store;

  beforeAll(async () => {
    server = await startPostgres();
    store = await openStore("postgres", {}, server.url("postgres"));
  });
  afterAll(async () => {
    await store.close();
    await server.remove();
  });

  test("adds up by app, day, shape and status, with thousands of counts at a time", async () => {
    const ledger = await open(store, "crowd");
    const counts = Array.from({ length: 5_000 }, (_, index) =>
      ledger.count({
        app: index % 5 === 0 ? "a" : "b",
        shape: "list",
        status: index % 2 === 0 ? 200 : 400,
        saving: "",
      }),
    );
    await Promise.all(counts);
    await ledger.close();
    expect(await usage(store)).toEqual([
      ["a", DAY, "list", "200", "500"],
      ["a", DAY, "list", "400", "500"],
      ["b", DAY, "list", "200", "2000"],
      ["b", DAY, "list", "400", "2000"],
    ]);
    expect(await readdir(join(store.folder, "crowd"))).toEqual([]);
    await store.database.query(sql("DELETE FROM precast.usage"));
  });

  test("keeps on disk what the database could not take, and sends it once after the next start", async () => {
    const ledger = await open(store, "outage");
    await server.stop("immediate");
    await ledger.count({ app: "a", shape: "search", status: 503, saving: "" });
    await ledger.close();
    expect(await readdir(join(store.folder, "outage"))).toHaveLength(1);

    await server.start();
    for (const _ of ["first", "second"]) await (await open(store, "outage")).close();
    expect(await usage(store)).toEqual([["a", DAY, "search", "503", "1"]]);
    expect(await readdir(join(store.folder, "outage"))).toEqual([]);
  });
});
