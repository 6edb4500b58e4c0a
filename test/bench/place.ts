/**
 * Where a benchmark works: a folder of its own and databases, deleted when it ends. Nothing large is deleted before
 * that: on ext4, what is written after a large deletion may take several times as long.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { escapeIdentifier } from "pg";
import { createDatabase, dropDatabase, startPostgres, type TestServer } from "../support/postgres.ts";
import { withClient } from "./client.ts";

export type Place = {
  readonly folder: string;
  /** Makes an empty database and returns its URL. */
  readonly database: (name: string) => Promise<string>;
  /**
   * A database that an earlier benchmark kept, if its content is complete; else an empty one. With `keep` and
   * `databaseUrl`, it is kept under its name afterwards.
   */
  readonly standing: (name: string, isWhole: (url: string) => Promise<boolean>) => Promise<Standing>;
  /** The version of PostgreSQL; null before the first database. */
  readonly postgres: () => string | null;
  readonly close: () => Promise<void>;
};

export type Standing = { readonly url: string; readonly fresh: boolean };

export type PlaceOptions = {
  /** The folder in which the benchmark's folder is made. */
  readonly dir: string;
  readonly keep: boolean;
  /** A server on which databases may be made; null to start one. */
  readonly databaseUrl: string | null;
  /** Further settings of a server that is started. */
  readonly settings?: Readonly<Record<string, string>>;
};

/** PostgreSQL must not start work of its own while something is timed. */
const SETTINGS = { autovacuum: "off", max_wal_size: "4GB" };

export function openPlace({ dir, keep, databaseUrl, settings = {} }: PlaceOptions): Place {
  mkdirSync(dir, { recursive: true });
  const folder = mkdtempSync(join(dir, "precast-bench-"));
  const databases: string[] = [];
  let server: TestServer | null = null;
  let version: string | null = null;
  let closing: Promise<void> | null = null;

  async function admin(): Promise<string> {
    if (databaseUrl !== null) return databaseUrl;
    server ??= await startPostgres({ settings: { ...SETTINGS, ...settings } });
    return server.url("postgres");
  }
  async function closeAll(): Promise<void> {
    process.off("SIGINT", interrupt).off("SIGTERM", interrupt);
    if (server === null) for (const url of databases) await dropDatabase(url);
    else await server.remove();
    if (!keep) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
  const close = () => {
    closing ??= closeAll();
    return closing;
  };
  const interrupt = () => void close().finally(() => process.exit(130));
  process.once("SIGINT", interrupt).once("SIGTERM", interrupt);

  const database: Place["database"] = async (name) => {
    const url = await createDatabase(await admin(), `bench_${name}`);
    databases.push(url);
    version ??= await versionOf(url);
    return url;
  };
  const standing: Place["standing"] = async (name, isWhole) => {
    if (databaseUrl === null || !keep) return { url: await database(name), fresh: true };
    version ??= await versionOf(databaseUrl);
    return standingOn(databaseUrl, `bench_${name}`, isWhole);
  };

  return {
    folder,
    database,
    standing,
    postgres: () => version,
    close,
  };
}

async function standingOn(admin: string, name: string, isWhole: (url: string) => Promise<boolean>): Promise<Standing> {
  const url = new URL(admin);
  url.pathname = `/${encodeURIComponent(name)}`;
  const found = await withClient(admin, (client) => client.query("SELECT FROM pg_database WHERE datname = $1", [name]));
  if (found.rowCount === 1) {
    if (await isWhole(url.href)) return { url: url.href, fresh: false };
    await dropDatabase(url.href);
  }
  await withClient(admin, (client) => client.query(`CREATE DATABASE ${escapeIdentifier(name)} TEMPLATE template0`));
  return { url: url.href, fresh: true };
}

async function versionOf(url: string): Promise<string | null> {
  const { rows } = await withClient(url, (client) => client.query<{ server_version: string }>("SHOW server_version"));
  return rows[0]?.server_version ?? null;
}
