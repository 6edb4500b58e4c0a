/** PostgreSQL over TLS: queries, cancellations, and a certificate that is not trusted. */
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { openDatabase } from "../../cli/database.ts";
import type { Database } from "../../shared/database/database.ts";
import { sql } from "../../shared/sql/query.ts";
import { openPlace, type Place } from "../support/cli.ts";
import { rowsOf } from "../support/replica-set.ts";
import { forward, openTcpProxy, type TcpProxy } from "../support/tcp-proxy.ts";
import { KEY, OF_ANOTHER } from "../support/tls.ts";
import { until } from "../support/until.ts";

/** PostgreSQL's protocol, SSLRequest: a length of 8 and a number that no version has. */
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]);

const SLOW = "SELECT pg_sleep(600)::text, 'over TLS'";
const RUNNING = `SELECT pid FROM pg_stat_activity WHERE state = 'active' AND query = '${SLOW.replaceAll("'", "''")}'`;

let proxy: TcpProxy;
let place: Place;
let encrypted = 0;

beforeAll(async () => {
  proxy = await openTcpProxy(inject("postgresUrl"), (near, far) => {
    near.once("data", (first: Buffer) => {
      if (!first.equals(SSL_REQUEST)) return near.destroy();
      encrypted++;
      near.write("S");
      forward(secured(near), far);
    });
  });
  place = openPlace();
});
afterAll(async () => {
  await place.close();
  await proxy.close();
});

function secured(near: Socket): Socket {
  const socket = new TLSSocket(near, { isServer: true, key: KEY, cert: OF_ANOTHER });
  socket.on("error", () => {});
  return socket;
}

function urlWith(sslmode: string): string {
  const url = new URL(proxy.url);
  url.searchParams.set("sslmode", sslmode);
  return url.href;
}

async function withDatabase(use: (database: Database) => Promise<void>): Promise<void> {
  const database = await openDatabase({ url: urlWith("no-verify"), dataDir: "", queryTimeout: 5_000, connections: 1 });
  await use(database).finally(database.close);
}

test("queries are answered over TLS, and aborted ones are cancelled over TLS too", async () => {
  await withDatabase(async (database) => {
    expect(await database.query(sql("SELECT '1'"))).toEqual([["1"]]);
    const before = encrypted;
    const giving = new AbortController();
    const given = database.query(sql(SLOW), giving.signal);
    await until("it to run", async () => (await rowsOf(inject("postgresUrl"), RUNNING)).length === 1);
    giving.abort();
    await expect(given).rejects.toMatchObject({ reason: "timeout" });
    expect(encrypted).toBe(before + 1);
    expect(await database.query(sql("SELECT '2'"))).toEqual([["2"]]);
  });
});

test("an untrusted certificate is reported as such, with the settings that help", async () => {
  const { code, stdout, stderr } = await place.run("status", { DATABASE_URL: urlWith("verify-full") });
  expect([code, stdout]).toEqual([1, ""]);
  expect(stderr).toMatch(
    /^The certificate of the database is not trusted \(.*\)\. .*sslrootcert=.*sslmode=no-verify\.\n$/,
  );
});
