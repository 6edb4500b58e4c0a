/** Opens the database for a command and sees to its schema: the embedded one is migrated, PostgreSQL has to be. */
import type { CommonName, Settings } from "../shared/config.ts";
import { type Database, type DatabaseOptions, sql } from "../shared/database/database.ts";
import { HostEndedFault } from "../shared/database/fault.ts";
import { openDatabase } from "../shared/database/open.ts";
import { migrate, type SchemaState, schemaState } from "../shared/schema/migrate.ts";

export class SchemaError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "SchemaError";
  }
}

/** The contract's limit for live queries, in milliseconds (section 6). */
export const QUERY_TIMEOUT = 5_000;

type Limits = Partial<Pick<DatabaseOptions, "connections" | "queryTimeout" | "share">>;

export function databaseOptions({ databaseUrl, dataDir }: Settings<CommonName>, limits: Limits = {}): DatabaseOptions {
  return { url: databaseUrl, dataDir, queryTimeout: null, connections: 4, ...limits };
}

/** Runs `use` with a database whose schema is up to date, and closes it. */
export async function withDatabase<T>(
  settings: Settings<CommonName>,
  use: (database: Database) => Promise<T>,
  limits: Limits = {},
): Promise<T> {
  const database = await openDatabase(databaseOptions(settings, limits));
  try {
    await needSchema(database).catch((error: unknown) => {
      // Who outlives its host opens the database itself when it asks again.
      if (limits.share !== true || !(error instanceof HostEndedFault)) throw error;
      return needSchema(database);
    });
    return await use(database);
  } finally {
    await database.close();
  }
}

/** For people. Who is in the wrong folder is told so by the embedded one's. */
export function databaseName({ databaseUrl, dataDir }: Settings<CommonName>): string {
  return databaseUrl === null ? `the embedded database in ${dataDir}` : "the database";
}

/** What is said where a database holds no app. */
export function noAppText(settings: Settings<CommonName>): string {
  const remedy =
    settings.databaseUrl === null
      ? "import a bundle (precast import <folder>), or name a database with --database-url"
      : "import a bundle first (precast import <folder>)";
  return `No app in ${databaseName(settings)}: ${remedy}.`;
}

export async function needSchema(database: Database): Promise<void> {
  const { missing } = await knownSchema(database);
  if (missing.length === 0) return;
  if (database.kind === "postgres") {
    throw new SchemaError("The database lacks the current schema of Precast. Run `precast migrate` first.");
  }
  await migrate(database);
}

/** Throws SchemaError when another Precast has been here, whose schema this one does not know. */
export async function knownSchema(database: Database): Promise<SchemaState> {
  const state = await schemaState(database);
  if (state.unknown.length > 0) {
    const anew = database.kind === "embedded" ? "remove the folder database in --data-dir" : "take a new database";
    throw new SchemaError(
      "The database was migrated by a newer Precast, or by one from before the first release. " +
        `Upgrade this one (npm install precast@latest), or ${anew}, and import again.`,
    );
  }
  return state;
}

/** Throws SchemaError when the database could not keep every script. */
export async function needUtf8(database: Database): Promise<void> {
  const [row] = await database.query(sql("SELECT current_setting('server_encoding')"));
  const encoding = row?.[0];
  if (encoding === "UTF8") return;
  throw new SchemaError(
    `The encoding of the database is ${encoding}, which cannot keep every script. ` +
      "Make one with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0.",
  );
}
