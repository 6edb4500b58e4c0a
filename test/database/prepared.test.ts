/** Recurring queries become prepared statements with generic plans, and a connection keeps a limited number of them. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Database } from "../../shared/database/database.ts";
import { type Query, sql } from "../../shared/sql/query.ts";
import { ENGINES, openStore, type Store } from "../support/site.ts";

const recurring = (text: string, value: string): Query => ({ text, values: [value], recurringPlan: "generic" });

describe.each(ENGINES)("on %s", (engine) => {
  let store: Store;
  let database: Database;

  beforeAll(async () => {
    store = await openStore(engine, { connections: 1, queryTimeout: 5_000 });
    database = store.database;
  });
  afterAll(() => store.close());

  const one = async (query: Query) => (await database.query(query))[0]?.[0];
  const held = async () => Number(await one(sql("SELECT count(*)::text FROM pg_prepared_statements")));

  test("a recurring query is prepared once, and each answer fits the values of its query", async () => {
    for (let turn = 1; turn <= 10; turn++)
      expect(await one(recurring("SELECT ($1::int * 2)::text", String(turn)))).toBe(String(turn * 2));
    expect(await held()).toBe(1);
  });

  test("a query that is not marked as recurring is not prepared", async () => {
    for (let turn = 1; turn <= 10; turn++) await one(sql("SELECT ($1::int * 3)::text", [String(turn)]));
    expect(await held()).toBe(1);
  });

  test("a recurring query uses a generic plan, and plan_cache_mode is auto for other queries", async () => {
    const rare = "SELECT count(*)::text FROM pg_class WHERE relname = $1";
    for (let turn = 1; turn <= 12; turn++) await one(recurring(rare, `table ${turn}`));
    const plans = "SELECT generic_plans || ' ' || custom_plans FROM pg_prepared_statements WHERE statement = $1";
    expect(await one(sql(plans, [rare]))).toBe("10 0");
    expect(await one(sql("SELECT current_setting('plan_cache_mode')"))).toBe("auto");
  });

  test("enable_seqscan is off for a recurring query, and on for a query that is not marked as recurring", async () => {
    const text = "SELECT current_setting('enable_seqscan') || $1";
    for (let turn = 1; turn <= 4; turn++) await one(recurring(text, ""));
    expect(await one(recurring(text, ""))).toBe("off");
    expect(await one(sql(text, [""]))).toBe("on");
  });

  test("a recurring query whose best plan may depend on its values gets custom plans", async () => {
    const text = "SELECT count(*)::text FROM pg_class WHERE oid > $1::oid AND relname = $2 AND relkind = 'i'";
    for (let turn = 1; turn <= 12; turn++) await one({ text, values: [String(turn), "x"], recurringPlan: "auto" });
    const plans = "SELECT custom_plans::text FROM pg_prepared_statements WHERE statement = $1";
    expect(Number(await one(sql(plans, [text])))).toBeGreaterThanOrEqual(5);
  });

  test("a transaction after recurring queries begins with plan_cache_mode auto", async () => {
    for (let turn = 1; turn <= 4; turn++) await one(recurring("SELECT ($1::int * 5)::text", String(turn)));
    const mode = await database.transaction("read", (session) => session.query(sql("SHOW plan_cache_mode")));
    expect(mode).toEqual([["auto"]]);
  });

  test("a recurring query that fails for one value works for the next", async () => {
    const text = "SELECT (10 / $1::int)::text";
    for (const value of ["1", "2", "0", "5", "0", "10"]) {
      if (value === "0") await expect(one(recurring(text, value))).rejects.toThrow("division by zero");
      else expect(await one(recurring(text, value))).toBe(String(10 / Number(value)));
    }
  });

  test("a connection keeps at most 200 prepared statements, however many queries recur", async () => {
    const most: number[] = [];
    for (let number = 1; number <= 450; number++) {
      for (let turn = 1; turn <= 4; turn++)
        expect(await one(recurring(`SELECT ($1::int + ${number})::text`, "1"))).toBe(String(number + 1));
      if (number % 50 === 0) most.push(await held());
    }
    expect(Math.max(...most)).toBeLessThanOrEqual(200);
    expect(Math.max(...most)).toBeGreaterThan(100);
  });

  test("enable_seqscan is off for a recurring query in a transaction", async () => {
    const text = "SELECT current_setting('enable_seqscan') || $1 || '!'";
    const asked = await database.transaction("read", async (session) => {
      for (let turn = 1; turn <= 4; turn++) await session.query(recurring(text, ""));
      return session.query(recurring(text, ""));
    });
    expect(asked).toEqual([["off!"]]);
  });

  test("a rollback does not change the planner settings of the queries after it", async () => {
    const text = "SELECT current_setting('enable_seqscan') || $1 || '?'";
    for (let turn = 1; turn <= 4; turn++) await one(recurring(text, ""));
    const given = database.transaction("read", async (session) => {
      await session.query(recurring(text, ""));
      throw new Error("given up");
    });
    await expect(given).rejects.toThrow("given up");
    expect(await one(recurring(text, ""))).toBe("off?");
    expect(await one(sql(text, [""]))).toBe("on?");
  });

  test("enable_seqscan is on for other queries, also when all prepared statements have just been dropped", async () => {
    for (let number = 1; number <= 210; number++) {
      for (let turn = 1; turn <= 3; turn++) await one(recurring(`SELECT ($1::int - ${number})::text`, "1"));
      expect(await one(sql("SELECT current_setting('enable_seqscan')"))).toBe("on");
    }
  });

  test("a connection keeps at most 200 prepared statements in a transaction, and answers all queries", async () => {
    const most = await database.transaction("read", async (session) => {
      const sizes: number[] = [];
      for (let number = 1; number <= 450; number++) {
        for (let turn = 1; turn <= 3; turn++) {
          const asked = await session.query(recurring(`SELECT ($1::int * 2 + ${number})::text`, "1"));
          expect(asked).toEqual([[String(number + 2)]]);
        }
        const [[size] = []] = await session.query(sql("SELECT count(*)::text FROM pg_prepared_statements"));
        sizes.push(Number(size));
      }
      for (let number = 1; number <= 450; number += 50)
        expect(await session.query(recurring(`SELECT ($1::int * 2 + ${number})::text`, "1"))).toEqual([
          [String(number + 2)],
        ]);
      return Math.max(...sizes);
    });
    expect(most).toBeLessThanOrEqual(200);
    expect(most).toBeGreaterThan(100);
  });

  if (engine === "embedded") return;

  test("the error for a prepared statement that is missing advises to pool connections by session", async () => {
    const query = recurring("SELECT ($1::int * 7)::text", "1");
    for (let turn = 1; turn <= 4; turn++) await one(query);
    await database.execute("DEALLOCATE ALL");
    await expect(one(query)).rejects.toThrow(/pooler with transaction pooling .*session pooling$/);
  });

  test("the error for a statement name that is already taken advises to pool connections by session", async () => {
    const asked = async (number: number) => {
      for (let turn = 1; turn <= 3; turn++) await one(recurring(`SELECT ($1::int * ${number})::text`, "1"));
    };
    await asked(11);
    const numbers = "SELECT max(replace(name, 'precast_', '')::int)::text FROM pg_prepared_statements";
    await database.execute(`PREPARE precast_${Number(await one(sql(numbers))) + 1} AS SELECT 'somebody else'`);
    await expect(asked(13)).rejects.toThrow(/pooler with transaction pooling .*session pooling$/);
  });
});
