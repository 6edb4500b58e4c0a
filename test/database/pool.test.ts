/** Pooled connections: one that breaks fails only its own query, and settings of the role do not apply. */
import { expect, inject, test } from "vitest";
import { openDatabase } from "../../cli/database.ts";
import { sql } from "../../shared/sql/query.ts";
import { forward, type Join, openTcpProxy } from "../support/tcp-proxy.ts";

const OPTIONS = { dataDir: "", queryTimeout: null, connections: 1 };

/** Ends the server process once it is ready for queries, and passes on its messages only when it has closed. */
function hastily(end: (pid: number) => Promise<unknown>): Join {
  return (near, far) => {
    const held: Buffer[] = [];
    near.pipe(far);
    far.on("data", (chunk: Buffer) => {
      held.push(chunk);
      const pid = welcomedAs(Buffer.concat(held));
      if (pid !== null) void end(pid);
    });
    far.on("end", () => near.end(Buffer.concat(held)));
  };
}

/** The pid of the server process once it is ready for queries, else null. K is BackendKeyData, Z is ReadyForQuery. */
function welcomedAs(bytes: Buffer): number | null {
  let pid: number | null = null;
  for (let at = 0; at + 5 <= bytes.length; at += 1 + bytes.readInt32BE(at + 1)) {
    const kind = String.fromCharCode(bytes[at] as number);
    if (kind === "K") pid = bytes.readInt32BE(at + 5);
    if (kind === "Z") return pid;
  }
  return null;
}

test("a connection that ends as soon as it is made fails the query that opened it, and no later query", async () => {
  const target = inject("postgresUrl");
  const observer = await openDatabase({ ...OPTIONS, url: target });
  const end = (pid: number) => observer.query(sql("SELECT pg_terminate_backend($1::integer)::text", [String(pid)]));
  const joins = [hastily(end)];
  const proxy = await openTcpProxy(target, (near, far) => (joins.pop() ?? forward)(near, far));
  const database = await openDatabase({ ...OPTIONS, url: proxy.url });
  await expect(database.query(sql("SELECT '1'"))).rejects.toMatchObject({ reason: "unavailable" });
  expect(await database.query(sql("SELECT '1'"))).toEqual([["1"]]);
  await Promise.all([database.close(), observer.close()]);
  await proxy.close();
});

/** A URL with settings as they may be set for a role that other programs use too. */
function urlWith(settings: Readonly<Record<string, string>>): string {
  const url = new URL(inject("postgresUrl"));
  const options = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`);
  url.searchParams.set("options", options.join(" "));
  return url.href;
}

test("query results do not depend on the settings of the role", async () => {
  const settings = {
    extra_float_digits: "0",
    standard_conforming_strings: "off",
    escape_string_warning: "off",
    default_transaction_isolation: "serializable",
  };
  for (const queryTimeout of [null, 5_000]) {
    const database = await openDatabase({ ...OPTIONS, queryTimeout, url: urlWith(settings) });
    const read = "SELECT (0.1::float8 + 0.2)::text, length('\\d')::text, current_setting('transaction_isolation')";
    expect(await database.query(sql(read))).toEqual([["0.30000000000000004", "2", "read committed"]]);
    await database.close();
  }
});

test("a transaction has these settings also in a session that lacks them, as a pooler may choose one", async () => {
  const database = await openDatabase({ ...OPTIONS, url: inject("postgresUrl") });
  const read = sql("SELECT current_setting('search_path'), current_setting('row_security')");
  await database.execute("RESET ALL");
  expect(await database.query(read)).toEqual([['"$user", public', "on"]]);
  for (const access of ["read", "write"] as const) {
    const settings = await database.transaction(access, (session) => session.query(read));
    expect([access, settings]).toEqual([access, [["pg_catalog, pg_temp", "off"]]]);
  }
  await database.close();
});

test.each([
  ["64kB", "32MB"],
  ["1GB", "1GB"],
])("a connection that answers requests has enough memory for large searches: work_mem = %s", async (given, used) => {
  const database = await openDatabase({ ...OPTIONS, queryTimeout: 5_000, url: urlWith({ work_mem: given }) });
  expect(await database.query(sql("SELECT current_setting('work_mem')"))).toEqual([[used]]);
  await database.close();
});

test("a connection without a query timeout, as builds use it, ignores the timeouts of the role", async () => {
  const kinds = ["statement", "idle_in_transaction_session", "idle_session", "transaction"];
  const known = await openDatabase({ ...OPTIONS, url: inject("postgresUrl") });
  const there = sql("SELECT name FROM pg_settings WHERE name = ANY ($1::text[])", [
    kinds.map((kind) => `${kind}_timeout`),
  ]);
  const names = (await known.query(there)).map(([name]) => name as string);
  await known.close();
  expect(names.length).toBeGreaterThanOrEqual(3);
  const database = await openDatabase({
    ...OPTIONS,
    url: urlWith(Object.fromEntries(names.map((name) => [name, "100ms"]))),
  });
  for (const name of names) {
    expect([name, ...(await database.query(sql("SELECT current_setting($1)", [name])))]).toEqual([name, ["0"]]);
  }
  expect(await database.query(sql("SELECT pg_sleep(0.2)::text"))).toEqual([[""]]);
  await database.close();
});
