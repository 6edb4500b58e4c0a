/**
 * Where a bench works: a folder of its own, and databases that are gone when it ends. Nothing large is deleted before:
 * on ext4, what is written after a large deletion may take several times as long.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { createDatabase, dropDatabase, startPostgres, type TestServer } from "../support/postgres.ts";
import { withClient } from "./client.ts";

export type Place = {
  readonly folder: string;
  /** Makes an empty database and gives its URL. */
  readonly database: (name: string) => Promise<string>;
  /** The version of PostgreSQL; null before the first database. */
  readonly postgres: () => string | null;
  readonly close: () => Promise<void>;
};

export type PlaceOptions = {
  /** The folder in which its folder is made. */
  readonly dir: string;
  readonly keep: boolean;
  /** A server on which databases may be made; null to start one. */
  readonly databaseUrl: string | null;
};

/** Nothing of its own accord while something is timed. */
const SETTINGS = { autovacuum: "off", max_wal_size: "4GB" };

export function openPlace({ dir, keep, databaseUrl }: PlaceOptions): Place {
  mkdirSync(dir, { recursive: true });
  const folder = mkdtempSync(join(dir, "precast-bench-"));
  const databases: string[] = [];
  let server: TestServer | null = null;
  let version: string | null = null;
  let closing: Promise<void> | null = null;

  async function admin(): Promise<string> {
    if (databaseUrl !== null) return databaseUrl;
    server ??= await startPostgres({ settings: SETTINGS });
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

  return {
    folder,
    database: async (name) => {
      const url = await createDatabase(await admin(), `bench_${name}`);
      databases.push(url);
      version ??= await versionOf(url);
      return url;
    },
    postgres: () => version,
    close,
  };
}

async function versionOf(url: string): Promise<string | null> {
  const { rows } = await withClient(url, (client) => client.query<{ server_version: string }>("SHOW server_version"));
  return rows[0]?.server_version ?? null;
}
