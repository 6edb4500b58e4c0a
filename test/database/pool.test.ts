/** The connections that queries share break in any moment, and nobody but who asks in that moment hears of it. */
import { connect, createServer, type Socket } from "node:net";
import { expect, inject, test } from "vitest";
import { sql } from "../../shared/database/database.ts";
import { openDatabase } from "../../shared/database/open.ts";

const OPTIONS = { dataDir: "", queryTimeout: null, connections: 1 };

/**
 * The way to a database, on which the first connection gets the welcome and the end of it in one piece. Its server is asked to end
 * it as soon as it has welcomed it.
 */
async function openHastyLine(target: URL, end: (pid: number) => Promise<unknown>) {
  let first = true;
  const sockets: Socket[] = [];
  const server = createServer((near) => {
    const far = connect(Number(target.port), target.hostname);
    sockets.push(near, far);
    near.pipe(far);
    if (!first) return void far.pipe(near);
    first = false;
    const held: Buffer[] = [];
    far.on("data", (chunk: Buffer) => {
      held.push(chunk);
      const pid = welcomedAs(Buffer.concat(held));
      if (pid !== null) void end(pid);
    });
    far.on("end", () => near.end(Buffer.concat(held)));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const url = new URL(target);
  url.port = String(typeof address === "object" ? address?.port : "");
  const close = () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  return { url: url.href, close };
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
  const line = await openHastyLine(new URL(target), (pid) =>
    observer.query(sql("SELECT pg_terminate_backend($1::integer)::text", [String(pid)])),
  );
  const database = await openDatabase({ ...OPTIONS, url: line.url });
  await expect(database.query(sql("SELECT '1'"))).rejects.toMatchObject({ reason: "unavailable" });
  expect(await database.query(sql("SELECT '1'"))).toEqual([["1"]]);
  await Promise.all([database.close(), observer.close()]);
  line.close();
});
