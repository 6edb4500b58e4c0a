/** Large results are read in batches, and the next batch is read ahead. */
import { setImmediate } from "node:timers/promises";
import { expect, inject, onTestFinished, test } from "vitest";
import { openDatabase } from "../../cli/database.ts";
import { type Database, readBatches } from "../../shared/database/database.ts";
import { DatabaseFault } from "../../shared/database/errors.ts";
import { sql } from "../../shared/sql/query.ts";
import { until } from "../support/until.ts";

const open = async (): Promise<Database> => {
  const database = await openDatabase({
    url: inject("postgresUrl"),
    dataDir: "",
    queryTimeout: null,
    connections: 1,
  });
  onTestFinished(() => database.close());
  return database;
};

/** The first batch arrives at once; the next one would take longer than any test. */
const ENDLESS = sql("SELECT n::text, CASE WHEN n > 50 THEN pg_sleep(600)::text END FROM generate_series(1, 1000) AS n");

test("all rows arrive in order, and batches become smaller after large rows", async () => {
  const database = await open();
  const query = sql(
    "SELECT n::text, repeat('x', CASE WHEN n > 300 THEN 30000 ELSE 1 END) FROM generate_series(1, 700) AS n",
  );
  const sizes = await database.transaction("read", async (session) => {
    const sizes: number[] = [];
    const numbers: number[] = [];
    for await (const rows of readBatches(session, query)) {
      sizes.push(rows.length);
      numbers.push(...rows.map(([number]) => Number(number)));
    }
    expect(numbers).toEqual(Array.from({ length: 700 }, (_, index) => index + 1));
    return sizes;
  });
  expect(sizes).toEqual([50, 250, 250, 139, 11]);
});

test("a connection lost during a batch rejects the wait for the next one, without an unhandled rejection", async () => {
  const [reader, other] = [await open(), await open()];
  const unheard: unknown[] = [];
  const hear = (reason: unknown) => unheard.push(reason);
  process.on("unhandledRejection", hear);
  onTestFinished(() => void process.off("unhandledRejection", hear));
  const reading = reader.transaction("read", async (session) => {
    const [row] = await session.query(sql("SELECT pg_backend_pid()::text"));
    const pid = row?.[0] ?? "";
    for await (const rows of readBatches(session, ENDLESS)) {
      expect(rows).toHaveLength(50);
      const activity = sql("SELECT wait_event FROM pg_stat_activity WHERE pid = $1::int", [pid]);
      await until("the next batch is read", async () => (await other.query(activity))[0]?.[0] === "PgSleep");
      await other.query(sql("SELECT pg_terminate_backend($1::int)::text", [pid]));
      await until("the connection is gone", async () => (await other.query(activity)).length === 0);
      // By now the read ahead has failed. Unhandled rejections are reported at the end of the event loop iteration.
      await setImmediate();
    }
  });
  await expect(reading).rejects.toBeInstanceOf(DatabaseFault);
  expect(unheard).toEqual([]);
});
