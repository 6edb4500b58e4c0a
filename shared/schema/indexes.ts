/** Reads from the migration files which indexes they create on tables, and by which statements. */
import { knownMigrations, readMigration } from "./migrate.ts";

export type SchemaIndex = {
  readonly name: string;
  /** The statements that create the index without blocking writers, and then set what else it needs. */
  readonly create: readonly string[];
};

const CREATED = /^CREATE INDEX (\w+) (ON precast\.[^;]*);/gm;
const ALTERED = /^ALTER INDEX precast\.(\w+) [^;]*(?=;)/gm;

/** All indexes but those of constraints and those that need an extension, in the order in which the files create them. */
export function schemaIndexes(): readonly SchemaIndex[] {
  const text = knownMigrations().map(readMigration).join("\n");
  const altered = [...text.matchAll(ALTERED)].map(([statement, name]) => ({ statement, name }));
  return [...text.matchAll(CREATED)].map(([, name = "", on = ""]) => {
    const create = `CREATE INDEX CONCURRENTLY IF NOT EXISTS ${name} ${on.replaceAll(/\s+/g, " ")}`;
    const others = altered.filter((other) => other.name === name).map(({ statement }) => statement);
    return { name, create: [create, ...others] };
  });
}

/** Whether two statements that create an index, in our spelling or in that of pg_get_indexdef, make the same of it. */
export function makeSameIndex(one: string, other: string): boolean {
  return plainOf(one) === plainOf(other);
}

/** What follows ON, without what PostgreSQL adds to it. */
function plainOf(statement: string): string {
  const [, on = ""] = / (ON precast\..*)$/s.exec(statement) ?? [];
  return on
    .replaceAll(/ USING btree|::text/g, "")
    .replaceAll(/[\s()]+/g, " ")
    .trim();
}
