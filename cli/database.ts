/**
 * Opens the database for a command and checks its schema. Migrates the embedded database; requires that PostgreSQL has
 * been migrated.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { App } from "../shared/api/catalog.ts";
import { QUERY_SECONDS } from "../shared/api/errors.ts";
import { readApps } from "../shared/apps.ts";
import { type CommonName, ConfigError, type Settings } from "../shared/config.ts";
import type { Database, DatabaseOptions, Session } from "../shared/database/database.ts";
import { ServerEndedFault } from "../shared/database/errors.ts";
import { migrate, type SchemaState, schemaState } from "../shared/schema/migrate.ts";
import { sql, type Value } from "../shared/sql/query.ts";
import { UnknownAppError } from "../shared/tree.ts";

export class SchemaError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "SchemaError";
  }
}

/** Time limit of live queries in milliseconds (shared/contract.md section 6). */
export const QUERY_TIMEOUT = QUERY_SECONDS * 1_000;

type Limits = Partial<Pick<DatabaseOptions, "connections" | "queryTimeout" | "share">>;

/**
 * PostgreSQL by its URL, or the embedded database. Each is loaded only when it is needed: a command uses one of them, and a
 * command that is refused before this point uses none.
 */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  if (options.url === null) return (await import("../shared/database/embedded/embedded.ts")).openEmbedded(options);
  return (await import("../shared/database/postgres/postgres.ts")).openPostgres(options.url, options);
}

export function databaseOptions({ databaseUrl, dataDir }: Settings<CommonName>, limits: Limits = {}): DatabaseOptions {
  return { url: databaseUrl, dataDir, queryTimeout: null, connections: 4, ...limits };
}

/**
 * Throws ConfigError when the embedded database would be used, but probably is not meant: a variable is missing. Only
 * commands that fill a database create one; and on a CI runner, which always names its database, it must be asked for.
 */
export function refuseUnmeantDatabase(
  { databaseUrl, dataDir }: Settings<CommonName>,
  { creates, isAsked, isRunner }: { readonly creates: boolean; readonly isAsked: boolean; readonly isRunner: boolean },
): void {
  if (databaseUrl !== null) return;
  if (isRunner && !isAsked)
    throw new ConfigError([
      "CI is set, and no database is named: specify a PostgreSQL with DATABASE_URL (--database-url), or the folder of the embedded database with PRECAST_DATA_DIR (--data-dir).",
    ]);
  if (!creates && !existsSync(join(dataDir, "database")))
    throw new ConfigError([
      `There is no database in ${dataDir}: specify a PostgreSQL with --database-url (DATABASE_URL), or import a bundle (precast import <folder>), which creates the embedded database.`,
    ]);
}

/** Runs `use` with a database whose schema is up to date, then closes it. Throws SchemaError when it is not. */
export async function withDatabase<T>(
  settings: Settings<CommonName>,
  use: (database: Database) => Promise<T>,
  limits: Limits = {},
): Promise<T> {
  const database = await openDatabase(databaseOptions(settings, limits));
  try {
    await ensureSchema(database).catch((error: unknown) => {
      // The process that hosted the database has ended. A process that shares it opens the database at its next query.
      if (limits.share !== true || !(error instanceof ServerEndedFault)) throw error;
      return ensureSchema(database);
    });
    return await use(database);
  } finally {
    await database.close();
  }
}

/** The database as messages name it. The folder of the embedded one shows a user who is in the wrong folder. */
export function databaseName({ databaseUrl, dataDir }: Settings<CommonName>): string {
  return databaseUrl === null ? `the embedded database in ${dataDir}` : "the database";
}

/** The message for a database without an app. */
export function noAppText(settings: Settings<CommonName>): string {
  const remedy =
    settings.databaseUrl === null
      ? "import a bundle (precast import <folder>), or specify a database with --database-url"
      : "import a bundle first (precast import <folder>)";
  return `No app in ${databaseName(settings)}: ${remedy}.`;
}

/** The key that is asked for, or the only one. Throws UnknownAppError, or ConfigError when there are several. */
export function chooseKey(keys: readonly string[], asked: string | null): string {
  if (asked !== null && !keys.includes(asked)) throw new UnknownAppError([asked], keys);
  if (asked === null && keys.length > 1)
    throw new ConfigError([`--app is missing, and there are several apps: ${keys.join(", ")}`]);
  return asked ?? (keys[0] as string);
}

/** The app of the database that is asked for, or the only one. Throws as chooseKey, and ConfigError when there is none. */
export async function readChosenApp(
  session: Session,
  asked: string | null,
  settings: Settings<CommonName>,
): Promise<App> {
  const apps = await readApps(session, settings);
  if (apps.length === 0 && asked === null) throw new ConfigError([noAppText(settings)]);
  const key = chooseKey(
    apps.map((app) => app.key),
    asked,
  );
  return apps.find((app) => app.key === key) as App;
}

/** Migrates an embedded database that lacks the current schema. Throws SchemaError for a PostgreSQL that lacks it. */
export async function ensureSchema(database: Database): Promise<void> {
  const { missing } = await requireKnownSchema(database);
  if (missing.length === 0) return;
  if (database.kind === "postgres") {
    throw new SchemaError("The database lacks the current schema of Precast. Run `precast migrate` first.");
  }
  await migrate(database);
}

/** The state of the schema. Throws SchemaError when the database has migrations that this version does not know. */
export async function requireKnownSchema(database: Database): Promise<SchemaState> {
  const state = await schemaState(database);
  if (state.unknown.length > 0) {
    const anew = database.kind === "embedded" ? "remove the folder `database` in --data-dir" : "use a new database";
    throw new SchemaError(
      "The database was migrated by a newer version of Precast, or by one from before the first release. " +
        `Upgrade Precast (npm install precast@latest), or ${anew} and import again.`,
    );
  }
  return state;
}

/** Reads the rows of a query as objects, which have the names of its columns. */
export async function readRows<R>(
  session: Pick<Session, "query">,
  text: string,
  values: readonly Value[] = [],
): Promise<R[]> {
  const [row] = await session.query(
    sql(`SELECT coalesce(json_agg(found), '[]')::text FROM (${text}) AS found`, values),
  );
  return JSON.parse(row?.[0] as string) as R[];
}

/** Reads the row of a query that has one. */
export async function readRow<R>(
  session: Pick<Session, "query">,
  text: string,
  values: readonly Value[] = [],
): Promise<R> {
  const [row] = await readRows<R>(session, text, values);
  return row as R;
}
