/**
 * How the schema of a database may differ from what the migration files made: in its triggers, its indexes and the
 * collations that order them.
 */
import type { Session } from "../database/database.ts";
import { sql } from "../sql/query.ts";
import { findMigrations, readMigration } from "./migrate.ts";

// ---- Triggers

/** A value of `pg_trigger.tgenabled`: O fires for ordinary writes, R for replicated rows, A for both. */
type Firing = "O" | "R" | "A";

export type Trigger = {
  /** `table.trigger`. */
  readonly name: string;
  readonly fires: Firing;
  /** The statement that makes an existing trigger fire as `fires` says. */
  readonly enable: string;
  /** The statement that creates a missing trigger, which then fires as `O`. */
  readonly create: string;
};

const CREATED_TRIGGER = /^CREATE (?:CONSTRAINT )?TRIGGER (\w+) [^;]*? ON precast\.(\w+)\b[^;]*;/gm;
const ENABLED_TRIGGER = /^ALTER TABLE precast\.(\w+) ENABLE (ALWAYS|REPLICA) TRIGGER (\w+);/gm;

/** All triggers, in the order in which the migration files create them. */
export async function readSchemaTriggers(): Promise<readonly Trigger[]> {
  const text = await readMigrations();
  const enabled = new Map(
    [...text.matchAll(ENABLED_TRIGGER)].map(([enable, table, when, name]) => [
      `${table}.${name}`,
      { fires: when === "ALWAYS" ? ("A" as const) : ("R" as const), enable },
    ]),
  );
  return [...text.matchAll(CREATED_TRIGGER)].map(([create, trigger, table]) => {
    const name = `${table}.${trigger}`;
    const byDefault = { fires: "O" as const, enable: `ALTER TABLE precast.${table} ENABLE TRIGGER ${trigger};` };
    return { name, create, ...(enabled.get(name) ?? byDefault) };
  });
}

// ---- Indexes

export type SchemaIndex = {
  readonly name: string;
  /** The statements that create the index without blocking writers, and then set what else it needs. */
  readonly create: readonly string[];
};

const CREATED_INDEX = /^CREATE INDEX (\w+) (ON precast\.[^;]*);/gm;
const ALTERED_INDEX = /^ALTER INDEX precast\.(\w+) [^;]*(?=;)/gm;

/**
 * All indexes but those of constraints and those that need an extension, in the order in which the migration files create
 * them.
 */
export async function readSchemaIndexes(): Promise<readonly SchemaIndex[]> {
  const text = await readMigrations();
  const altered = [...text.matchAll(ALTERED_INDEX)].map(([statement, name]) => ({ statement, name }));
  return [...text.matchAll(CREATED_INDEX)].map(([, name = "", on = ""]) => {
    const create = `CREATE INDEX CONCURRENTLY IF NOT EXISTS ${name} ${on.replaceAll(/\s+/g, " ")}`;
    const others = altered.filter((other) => other.name === name).map(({ statement }) => statement);
    return { name, create: [create, ...others] };
  });
}

/** Whether two statements that create an index, in our spelling or in that of pg_get_indexdef, make the same of it. */
export function makeSameIndex(one: string, other: string): boolean {
  return normalizeStatement(one) === normalizeStatement(other);
}

/** What follows ON, without what PostgreSQL adds to it, and without parameters of storage, which operators may set. */
function normalizeStatement(statement: string): string {
  const [, on = ""] = / (ON precast\..*)$/s.exec(statement) ?? [];
  return on
    .replaceAll(/ USING btree|::text| WITH \([^)]*\)/g, "")
    .replaceAll(/[\s()]+/g, " ")
    .trim();
}

async function readMigrations(): Promise<string> {
  return (await findMigrations()).map(readMigration).join("\n");
}

// ---- Collations

/**
 * A collation whose version on the server is no longer the one with which the indexes were built. Collations come from a
 * library of the operating system, such as ICU, and another version of it may order texts differently.
 */
export type ChangedCollation = {
  /** Schema-qualified name, quoted as an SQL identifier. */
  readonly name: string;
  readonly before: string;
  readonly now: string;
};

export async function changedCollations(session: Pick<Session, "query">): Promise<ChangedCollation[]> {
  const rows = await session.query(
    // MATERIALIZED selects the used collations first: asking for the actual version of every collation is slow.
    sql(`WITH used AS MATERIALIZED (
  SELECT * FROM pg_collation WHERE oid IN (
    SELECT unnest(indcollation) FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
    WHERE relnamespace = 'precast'::regnamespace))
SELECT format('%I.%I', collnamespace::regnamespace, collname), collversion, pg_collation_actual_version(oid)
FROM used WHERE collversion <> pg_collation_actual_version(oid)`),
  );
  return rows.map(([name, before, now]) => ({ name: name as string, before: before as string, now: now as string }));
}
