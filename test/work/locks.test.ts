/** The locks of a worker process in PostgreSQL: who has them, and that nothing of them stays when they are released. */
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { type Locks, openLocks } from "../../cli/work/locks.ts";
import { openPlainPool } from "../../shared/database/postgres/pool.ts";
import { sql } from "../../shared/sql/query.ts";
import { openStore, type Store } from "../support/site.ts";
import { until } from "../support/until.ts";

let store: Store;
beforeAll(async () => {
  store = await openStore("postgres");
});
afterAll(() => store.close());

function openProcess(): Locks {
  const pool = openPlainPool(store.url ?? "", 1, "test");
  const locks = openLocks(pool);
  onTestFinished(async () => {
    await locks.close();
    await pool.end();
  });
  return locks;
}

const countHeld = async () =>
  Number(
    (
      await store.database.query(
        sql(`SELECT count(*)::text FROM pg_locks WHERE locktype = 'advisory'
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`),
      )
    )[0]?.[0],
  );

test("one process has the lock of an app until it releases it, and takes none twice", async () => {
  const [one, other] = [openProcess(), openProcess()];
  expect([await one.take("app"), await one.take("app"), await other.take("app")]).toEqual([true, false, false]);
  await one.release("app");
  expect(await other.take("app")).toBe(true);
});

test("a lock that is kept from the first connection on, or from a later moment, is gone once it is released", async () => {
  const locks = openProcess();
  locks.keep("first");
  await locks.renew();
  locks.keep("second");
  await locks.renew();
  expect(await countHeld()).toBe(2);
  await locks.release("first");
  await locks.release("second");
  expect(await countHeld()).toBe(0);
});

test("what a broken connection has lost is taken again, however often it breaks", async () => {
  const [one, other] = [openProcess(), openProcess()];
  one.keep("worker");
  await one.take("app");
  const cut = `SELECT count(pg_terminate_backend(pid)) FROM pg_locks WHERE locktype = 'advisory'
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
  for (let count = 0; count < 3; count++) {
    await store.database.execute(cut);
    const renew = () =>
      one.renew().then(
        () => true,
        () => false,
      );
    await until("the process to be connected again", renew);
    expect(await countHeld()).toBe(2);
  }
  expect(await other.take("app")).toBe(false);
  await one.release("app");
  await one.release("worker");
  expect(await countHeld()).toBe(0);
});
