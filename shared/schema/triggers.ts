/** The triggers that the numbered files make: the statements that make each, and when it fires. */
import { knownMigrations, readMigration } from "./migrate.ts";

/** As `pg_trigger.tgenabled` has it: O for what is written here, R for what replication brings, A for both. */
export type Firing = "O" | "R" | "A";

export type Trigger = {
  /** `table.trigger`. */
  readonly name: string;
  readonly fires: Firing;
  /** Has it fire so, where it is there. */
  readonly enable: string;
  /** Makes it where it is not; it fires for what is written here then. */
  readonly create: string;
};

const CREATED = /^CREATE (?:CONSTRAINT )?TRIGGER (\w+) [^;]*? ON precast\.(\w+)\b[^;]*;/gm;
const ENABLED = /^ALTER TABLE precast\.(\w+) ENABLE (ALWAYS|REPLICA) TRIGGER (\w+);/gm;

/** In the order of the files. */
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
    const usual = { fires: "O" as const, enable: `ALTER TABLE precast.${table} ENABLE TRIGGER ${trigger};` };
    return { name, create, ...(enabled.get(name) ?? usual) };
  });
}
