/** `precast migrate`: creates or upgrades the database schema. */
import type { Session } from "../../shared/database/database.ts";
import { migrate } from "../../shared/schema/migrate.ts";
import { sql } from "../../shared/sql/query.ts";
import { DONE, defineCommand } from "../command.ts";
import { databaseOptions, openDatabase, requireKnownSchema, SchemaError } from "../database.ts";

export const migrateCommand = defineCommand({
  name: "migrate",
  describes: "create or upgrade the tables of Precast in the database",
  argument: null,
  settings: [],
  database: "created",
  examples: ["precast migrate --database-url postgres://cms@db.internal/cms"],
  run: async ({ terminal }, settings) => {
    const database = await openDatabase(databaseOptions(settings));
    try {
      const missing = missingRequirement(await readTraits(database));
      if (missing !== null) throw new SchemaError(missing);
      await requireKnownSchema(database);
      const applied = await migrate(database);
      terminal.say(applied.length === 0 ? "The schema is up to date." : `Applied ${applied.join(", ")}.`);
      if (settings.json) terminal.result("", { applied });
      return DONE;
    } finally {
      await database.close();
    }
  },
});

// What a database must have for the schema.

export type DatabaseTraits = {
  /** As the server spells it: `16.4 (Debian 16.4-1.pgdg120+1)`. */
  readonly version: string;
  /** `server_version_num`: major version times 10,000, plus the minor version. */
  readonly versionNumber: number;
  readonly encoding: string;
  /** Whether PostgreSQL was built with ICU, whose collations order texts and fold their case. */
  readonly hasIcu: boolean;
};

/** The first one with the type `xid8`, which stamps what a transaction has changed. */
const OLDEST_MAJOR_VERSION = 13;

export async function readTraits(session: Pick<Session, "query">): Promise<DatabaseTraits> {
  const [row] = await session.query(
    sql(`SELECT current_setting('server_version'), current_setting('server_version_num'), current_setting('server_encoding'),
  EXISTS (SELECT FROM pg_collation WHERE collname = 'und-x-icu')::text`),
  );
  const [version, versionNumber, encoding, hasIcu] = row as [string, string, string, string];
  return { version, versionNumber: Number(versionNumber), encoding, hasIcu: hasIcu === "true" };
}

/** A sentence or two for the operator on what is missing; null when the database is suitable. */
export function missingRequirement({ version, versionNumber, encoding, hasIcu }: DatabaseTraits): string | null {
  if (versionNumber < OLDEST_MAJOR_VERSION * 10_000)
    return `Precast needs PostgreSQL ${OLDEST_MAJOR_VERSION} or newer, but the server is PostgreSQL ${version}.`;
  if (encoding !== "UTF8")
    return (
      `The encoding of the database is ${encoding}, which cannot store every character. ` +
      "Create one with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0."
    );
  if (!hasIcu)
    return (
      "The PostgreSQL server was built without ICU, which orders texts and folds their case. " +
      "Use a build that has it, such as those of Debian, of Docker's official image or of the large providers."
    );
  return null;
}
