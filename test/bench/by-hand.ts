/**
 * The program by hand, written for this content alone: node:http, a pool of pg and a table of statements. It knows no
 * app, checks no parameter and counts nothing. Its argument is the URL of the database.
 *
 *   /entry/<kind>/<id>                            an entry with its people expanded
 *   /list/<kind>?page=&per_page=&v=&v=            a page, and the total
 *   /search/<kind>?q=&page=&per_page=&v=&v=       the same for a search
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Pool } from "pg";
import { ENTRIES, LISTS, SEARCHES, type Statement } from "./live/hand-sql.ts";

/** As many as `precast serve` uses. */
const CONNECTIONS = 10;

const pool = new Pool({ connectionString: process.argv[2], max: CONNECTIONS });

async function run(kind: string, statement: Statement, values: readonly unknown[]) {
  const name = statement.custom ? {} : { name: kind };
  const { rows } = await pool.query<{ total: number; data: string }>({
    ...name,
    text: statement.text,
    values: [...values],
  });
  return rows[0];
}

async function answer(target: string): Promise<string> {
  const url = new URL(target, "http://localhost");
  const [, what = "", kind = "", id] = url.pathname.split("/");
  if (what === "entry") {
    const found = await run(kind, ENTRIES[kind] as Statement, [id]);
    return `{"data":${found?.data}}`;
  }
  const { searchParams: asked } = url;
  const page = Number(asked.get("page") ?? 1);
  const perPage = Number(asked.get("per_page") ?? 20);
  const statement = (what === "list" ? LISTS : SEARCHES)[kind] as Statement;
  const found = await run(kind, statement, [perPage, (page - 1) * perPage, ...asked.getAll("v")]);
  const total = found?.total ?? 0;
  const meta = { current_page: page, per_page: perPage, total, last_page: Math.max(1, Math.ceil(total / perPage)) };
  const query = what === "list" ? {} : { query: asked.get("q") };
  return `{"data":${found?.data},"meta":${JSON.stringify({ ...meta, ...query })}}`;
}

const server = createServer(async (incoming, outgoing) => {
  const [status, body] = await answer(incoming.url ?? "/").then(
    (text) => [200, text] as const,
    (error: Error) => [500, JSON.stringify({ error: error.message })] as const,
  );
  outgoing.writeHead(status, { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body) });
  outgoing.end(body);
});
// An idle connection must not be closed in the middle of a benchmark.
server.keepAliveTimeout = 65_000;
server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })}\n`);
});
process.once("SIGTERM", () => process.exit(0));
