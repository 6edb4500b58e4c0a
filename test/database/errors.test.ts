/** Which errors mean that PostgreSQL is unavailable (503 for a client), and which that a statement is at fault (500). */
import { afterAll, beforeAll, expect, test } from "vitest";
import { sql } from "../../shared/sql/query.ts";
import { openStore, type Store } from "../support/site.ts";

let store: Store;
beforeAll(async () => {
  store = await openStore("postgres");
});
afterAll(() => store.close());

const raise = (code: string) =>
  store.database.query(sql(`DO $$ BEGIN RAISE EXCEPTION 'as raised' USING ERRCODE = '${code}'; END $$`));

test.each([
  ["a lost connection", "08006"],
  ["a time limit of idle transactions", "25P03"],
  ["a time limit of transactions", "25P04"],
  ["a refused login", "28000"],
  ["a missing database", "3D000"],
  ["a conflict with another transaction", "40001"],
  ["a deadlock", "40P01"],
  ["a full disk", "53100"],
  ["too little memory", "53200"],
  ["a lock that is not available", "55P03"],
  ["a query that an administrator cancels", "57014"],
  ["a shutdown", "57P01"],
  ["a file that cannot be read", "58030"],
])("the database is unavailable after %s (%s)", async (_, code) => {
  await expect(raise(code)).rejects.toMatchObject({
    name: "DatabaseFault",
    reason: "unavailable",
    code,
    message: "as raised",
  });
});

test.each([
  ["a division by zero", "22012"],
  ["a value that is not unique", "23505"],
  ["a transaction that cannot write", "25006"],
  ["a missing schema", "3F000"],
  ["a syntax error", "42601"],
  ["a statement that is too complex", "54001"],
  ["an object in use", "55006"],
])("the statement is at fault after %s (%s)", async (_, code) => {
  await expect(raise(code)).rejects.toMatchObject({ name: "error", code, message: "as raised" });
});
