import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, cpSync, existsSync, lstatSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test, vi } from "vitest";
import {
  availablePostgres,
  createDatabase,
  dropDatabase,
  isRunning,
  startPostgres,
  type TestServer,
} from "./postgres.ts";

const found = availablePostgres();

test("the PostgreSQL server that all test files share answers a query", async () => {
  expect(await value(inject("postgresUrl"), "SELECT 1 AS value")).toBe(1);
});

test("availablePostgres finds at least one PostgreSQL, and none twice", () => {
  expect(found).not.toEqual([]);
  expect(new Set(found.map(({ bin }) => bin)).size).toBe(found.length);
});

test("PRECAST_TEST_POSTGRES_BIN without the programs is an error, and is not ignored", async () => {
  vi.stubEnv("PRECAST_TEST_POSTGRES_BIN", tmpdir());
  onTestFinished(() => void vi.unstubAllEnvs());
  expect(() => availablePostgres()).toThrow("PRECAST_TEST_POSTGRES_BIN");
  await expect(startPostgres()).rejects.toThrow("PRECAST_TEST_POSTGRES_BIN");
});

test("the folder of PRECAST_TEST_POSTGRES_BIN comes before all others", async () => {
  const last = found.at(-1);
  vi.stubEnv("PRECAST_TEST_POSTGRES_BIN", last?.bin);
  onTestFinished(() => void vi.unstubAllEnvs());
  expect(availablePostgres()).toEqual([last, ...found]);
});

describe.each(found)("PostgreSQL $version", ({ version, bin }) => {
  let server: TestServer;
  let url: string;

  beforeAll(async () => {
    server = await startPostgres({ bin, settings: { work_mem: "1234kB" } });
    url = server.url("postgres");
  });
  afterAll(() => server.remove());

  test("runs the named version, with the settings and encoding that the tests need", async () => {
    expect(await value(url, "SELECT current_setting('server_version') AS value")).toMatch(new RegExp(`^${version}\\b`));
    const names = ["listen_addresses", "unix_socket_directories", "fsync", "max_connections", "TimeZone", "work_mem"];
    names.push("server_encoding", "default_transaction_isolation");
    const values = await Promise.all(names.map((name) => value(url, `SELECT current_setting('${name}') AS value`)));
    const expected = ["127.0.0.1", "", "off", "100", "Asia/Kathmandu", "1234kB", "UTF8", "read committed"];
    expect(values).toEqual(expected);
    expect(await value(url, "SELECT datcollate AS value FROM pg_database WHERE datname = 'postgres'")).toBe("C");
  });

  test("makes empty databases with unique names, and drops one that is in use", async () => {
    const urls = await Promise.all([1, 2, 3].map(() => createDatabase(url, "it's")));
    expect(new Set(urls).size).toBe(3);
    const [first = ""] = urls;
    expect(await value(first, "SELECT count(*)::int AS value FROM pg_tables WHERE schemaname = 'public'")).toBe(0);
    const client = await connect(first);
    await Promise.all(urls.map(dropDatabase));
    await expect(client.query("SELECT 1")).rejects.toThrow();
    await expect(connect(first)).rejects.toThrow("does not exist");
    await dropDatabase(first);
  });

  test.each(["fast", "immediate"] as const)("stops (%s), and keeps committed data over the restart", async (mode) => {
    const database = await createDatabase(url);
    await value(database, "CREATE TABLE kept AS SELECT 7 AS value");
    const before = server.pid();
    const client = await connect(database);
    await server.stop(mode);
    await server.stop(mode);
    expect(() => server.pid()).toThrow("not running");
    await expect(client.query("SELECT 1")).rejects.toThrow();
    await expect(connect(database)).rejects.toThrow("ECONNREFUSED");
    await server.start();
    expect(server.pid()).not.toBe(before);
    expect(await value(database, "SELECT value FROM kept")).toBe(7);
    await expect(server.start()).rejects.toThrow("already running");
  });

  test("can be killed while a query runs, and keeps committed data when it starts again", async () => {
    const database = await createDatabase(url);
    await value(database, "CREATE TABLE kept AS SELECT 8 AS value");
    const client = await connect(database);
    const busy = expect(client.query("SELECT pg_sleep(600)")).rejects.toThrow();
    await server.kill();
    await busy;
    expect(() => server.pid()).toThrow("not running");
    await server.start();
    expect(await value(database, "SELECT value FROM kept")).toBe(8);
  });

  test("answers no query while it is paused, and all of them once it resumes", async () => {
    const client = await connect(url);
    onTestFinished(() => client.end());
    server.pause();
    let answered = 0;
    const old = client.query("SELECT 1").then(() => answered++);
    const fresh = value(url, "SELECT 1 AS value").then(() => answered++);
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(answered).toBe(0);
    server.resume();
    await Promise.all([old, fresh]);
    expect(answered).toBe(2);
  });

  test("can be stopped and killed while it is paused", async () => {
    server.pause();
    await server.stop();
    await server.start();
    server.pause();
    await server.kill();
    await server.start();
    expect(await value(url, "SELECT 1 AS value")).toBe(1);
  });

  test("leaves neither a process nor a data folder when it is removed", async () => {
    const other = await startPostgres({ bin });
    const pid = other.pid();
    const data = String(await value(other.url("postgres"), "SELECT current_setting('data_directory') AS value"));
    expect(existsSync(dirname(data))).toBe(true);
    await other.remove();
    expect(isRunning(pid)).toBe(false);
    expect(existsSync(dirname(data))).toBe(false);
  });

  test.each([
    ["exits", "process.exit(3)"],
    ["throws", "throw new Error('on purpose')"],
    ["is killed", "process.kill(process.pid, 'SIGKILL')"],
    ["is killed while the server is paused", "server.pause(); process.kill(process.pid, 'SIGKILL')"],
  ])("ends when the process that started it %s", async (_, end) => {
    const module = fileURLToPath(new URL("postgres.ts", import.meta.url));
    const script = `
      import { startPostgres } from ${JSON.stringify(module)};
      const server = await startPostgres({ bin: ${JSON.stringify(bin)} });
      process.stdout.write(String(server.pid()), () => { ${end} });`;
    const flags = ["--import", import.meta.resolve("tsx"), "--input-type=module", "-e", script];
    const child = spawn(process.execPath, flags, { stdio: ["ignore", "pipe", "ignore"] });
    const [output] = (await once(child.stdout, "data")) as [Buffer];
    const pid = Number(output.toString());
    expect(pid).toBeGreaterThan(1);
    await vi.waitFor(() => expect(isRunning(pid)).toBe(false), { timeout: 20_000, interval: 100 });
  });
});

const movable = found.filter(({ bin }) => existsSync(join(bin, "..", "pg-symlinks.json")));

test.skipIf(movable.length === 0)("npm's PostgreSQL runs without library links and from a private folder", async () => {
  const folder = mkdtempSync(join(tmpdir(), "precast-private-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  cpSync(join(movable[0]?.bin ?? "", ".."), folder, { recursive: true, verbatimSymlinks: true });
  const libraries = readdirSync(join(folder, "lib")).map((name) => join(folder, "lib", name));
  for (const path of libraries.filter((one) => lstatSync(one).isSymbolicLink())) rmSync(path);
  chmodSync(folder, 0o700);
  vi.stubEnv("PRECAST_TEST_POSTGRES_BIN", join(folder, "bin"));
  onTestFinished(() => void vi.unstubAllEnvs());
  const { bin = "" } = availablePostgres()[0] ?? {};
  expect(bin).toMatch(/precast-test-postgres-\w+\/bin$/);
  onTestFinished(() => rmSync(dirname(bin), { recursive: true }));
  const server = await startPostgres();
  onTestFinished(() => server.remove());
  expect(await value(server.url("postgres"), "SELECT 1 AS value")).toBe(1);
});

async function connect(url: string): Promise<Client> {
  const client = new Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  return client;
}

async function value(url: string, sql: string): Promise<unknown> {
  const client = await connect(url);
  try {
    return (await client.query<{ value: unknown }>(sql)).rows[0]?.value;
  } finally {
    await client.end();
  }
}
