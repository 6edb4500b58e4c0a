/** Creates or upgrades the schema `precast` from the numbered files in this folder, under an advisory lock. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Database, Session } from "../database/database.ts";
import { isDuplicate } from "../database/errors.ts";
import { findNames } from "../files.ts";
import { sql } from "../sql/query.ts";

const FOLDER = new URL("../schema/", import.meta.url);
/** Key of the advisory lock: an arbitrary number that other programs are unlikely to use. */
const LOCK = 7_232_278;

export type SchemaState = {
  readonly missing: readonly string[];
  readonly unknown: readonly string[];
};

/** Names of the migration files of this version, in the order in which they are applied. */
export function findMigrations(): Promise<string[]> {
  return findNames(fileURLToPath(FOLDER), "[0-9][0-9][0-9][0-9]_*.sql");
}

export function readMigration(name: string): string {
  return readFileSync(new URL(name, FOLDER), "utf8");
}

/** `missing` migrations are still to be applied; `unknown` ones were applied by another version of Precast. */
export async function schemaState(session: Session): Promise<SchemaState> {
  const known = await findMigrations();
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

/** Applies the missing migrations in one transaction and returns their names. */
export async function migrate(database: Database): Promise<readonly string[]> {
  return database.transaction("write", async (session) => {
    await session.query(sql(`SELECT pg_advisory_xact_lock(${LOCK})::text`));
    const [[schema] = []] = await session.query(sql("SELECT to_regnamespace('precast')::text"));
    // If the schema exists, the role needs no right to create schemas.
    if (schema === null) await session.execute("CREATE SCHEMA precast");
    await session.execute(
      "CREATE TABLE IF NOT EXISTS precast.migrations (name text PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())",
    );
    const { missing } = await schemaState(session);
    for (const name of missing) {
      await session.execute(readMigration(name)).catch((error: unknown) => {
        throw isDuplicate(error) ? unlisted(name, error) : error;
      });
      await session.query(sql("INSERT INTO precast.migrations (name) VALUES ($1)", [name]));
    }
    return missing;
  });
}

/** As after a restore of some of the tables. */
function unlisted(name: string, { message }: Error): Error {
  return new Error(
    `The list of applied migrations (precast.migrations) lacks ${name}, but what that creates exists (${message}). Nothing was changed. Restore that table from a backup, or migrate an empty database and import again.`,
  );
}
