/** The connections that queries share break in any moment, and nobody but who asks in that moment hears of it. */
import { expect, inject, test } from "vitest";
import { sql } from "../../shared/database/database.ts";
import { openDatabase } from "../../shared/database/open.ts";
import { carry, type Join, openLine } from "../support/line.ts";

const OPTIONS = { dataDir: "", queryTimeout: null, connections: 1 };

/** Holds back what the server says until it has ended the connection, and asks it to end it as soon as it has welcomed it. */
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

/** The process that serves a connection, once it is ready for queries: PostgreSQL's protocol, BackendKeyData and ReadyForQuery. */
function welcomedAs(bytes: Buffer): number | null {
  let pid: number | null = null;
  for (let at = 0; at + 5 <= bytes.length; at += 1 + bytes.readInt32BE(at + 1)) {
    const kind = String.fromCharCode(bytes[at] as number);
    if (kind === "K") pid = bytes.readInt32BE(at + 5);
    if (kind === "Z") return pid;
  }
  return null;
}

test("one that ends in the moment in which it is made fails who asked for it, and no other", async () => {
  const target = inject("postgresUrl");
  const observer = await openDatabase({ ...OPTIONS, url: target });
  const end = (pid: number) => observer.query(sql("SELECT pg_terminate_backend($1::integer)::text", [String(pid)]));
  const joins = [hastily(end)];
  const line = await openLine(target, (near, far) => (joins.pop() ?? carry)(near, far));
  const database = await openDatabase({ ...OPTIONS, url: line.url });
  await expect(database.query(sql("SELECT '1'"))).rejects.toMatchObject({ reason: "unavailable" });
  expect(await database.query(sql("SELECT '1'"))).toEqual([["1"]]);
  await Promise.all([database.close(), observer.close()]);
  await line.close();
});

test("who has no limit is not bound by those of the role either: a build takes what it takes", async () => {
  const url = new URL(inject("postgresUrl"));
  url.searchParams.set("options", "-c statement_timeout=100ms -c idle_in_transaction_session_timeout=100ms");
  const database = await openDatabase({ ...OPTIONS, url: url.href });
  const limits = "SELECT current_setting('statement_timeout'), current_setting('idle_in_transaction_session_timeout')";
  expect(await database.query(sql(limits))).toEqual([["0", "0"]]);
  expect(await database.query(sql("SELECT pg_sleep(0.2)::text"))).toEqual([[""]]);
  await database.close();
});
