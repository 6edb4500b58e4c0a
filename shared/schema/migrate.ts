/** Makes or upgrades the schema `precast` from the numbered files beside this one, under an advisory lock. */
import { readdirSync, readFileSync } from "node:fs";
import { type Database, type Session, sql } from "../database/database.ts";

const FOLDER = new URL("./", import.meta.url);
/** Any number that other programs are unlikely to lock. */
const LOCK = 7_232_278;

export type SchemaState = {
  readonly missing: readonly string[];
  readonly unknown: readonly string[];
};

/** The names of the files that this version knows, in order. */
export function knownMigrations(): string[] {
  return readdirSync(FOLDER)
    .filter((name) => /^\d{4}_\w+\.sql$/.test(name))
    .sort();
}

export function readMigration(name: string): string {
  return readFileSync(new URL(name, FOLDER), "utf8");
}

/** What is missing, and what a newer version has applied. */
export async function schemaState(session: Session): Promise<SchemaState> {
  const known = knownMigrations();
  const applied = await appliedMigrations(session);
  return {
    missing: known.filter((name) => !applied.includes(name)),
    unknown: applied.filter((name) => !known.includes(name)),
  };
}

async function appliedMigrations(session: Session): Promise<string[]> {
  const exists = await session.query(sql("SELECT to_regclass('precast.migrations')::text"));
  if (exists[0]?.[0] == null) return [];
  const rows = await session.query(sql("SELECT name FROM precast.migrations ORDER BY name"));
  return rows.map((row) => row[0] as string);
}

/** Applies what is missing, all or nothing, and gives the names of what it applied. */
export async function migrate(database: Database): Promise<readonly string[]> {
  return database.transaction("write", async (session) => {
    await session.query(sql(`SELECT pg_advisory_xact_lock(${LOCK})::text`));
    const [[schema] = []] = await session.query(sql("SELECT to_regnamespace('precast')::text"));
    // Where there is one, it takes no right to make any.
    if (schema === null) await session.execute("CREATE SCHEMA precast");
    await session.execute(
      "CREATE TABLE IF NOT EXISTS precast.migrations (name text PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())",
    );
    const { missing } = await schemaState(session);
    for (const name of missing) {
      await session.execute(readMigration(name));
      await session.query(sql("INSERT INTO precast.migrations (name) VALUES ($1)", [name]));
    }
    return missing;
  });
}
