/** Reads from the migration files which triggers they create, by which statements, and when each trigger fires. */
import { knownMigrations, readMigration } from "./migrate.ts";

/** A value of `pg_trigger.tgenabled`: O fires for ordinary writes, R for replicated rows, A for both. */
export type Firing = "O" | "R" | "A";

export type Trigger = {
  /** `table.trigger`. */
  readonly name: string;
  readonly fires: Firing;
  /** The statement that makes an existing trigger fire as `fires` says. */
  readonly enable: string;
  /** The statement that creates a missing trigger, which then fires as `O`. */
  readonly create: string;
};

const CREATED = /^CREATE (?:CONSTRAINT )?TRIGGER (\w+) [^;]*? ON precast\.(\w+)\b[^;]*;/gm;
const ENABLED = /^ALTER TABLE precast\.(\w+) ENABLE (ALWAYS|REPLICA) TRIGGER (\w+);/gm;

/** All triggers, in the order in which the files create them. */
export function schemaTriggers(): readonly Trigger[] {
  const text = knownMigrations().map(readMigration).join("\n");
  const enabled = new Map(
    [...text.matchAll(ENABLED)].map(([enable, table, when, name]) => [
      `${table}.${name}`,
      { fires: when === "ALWAYS" ? ("A" as const) : ("R" as const), enable },
    ]),
  );
  return [...text.matchAll(CREATED)].map(([create, trigger, table]) => {
    const name = `${table}.${trigger}`;
    const byDefault = { fires: "O" as const, enable: `ALTER TABLE precast.${table} ENABLE TRIGGER ${trigger};` };
    return { name, create, ...(enabled.get(name) ?? byDefault) };
  });
}
