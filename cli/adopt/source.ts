/** The database that has one's own tables: opens it, says in its words what went wrong, and lets its tables announce changes. */
import type { Database } from "../../shared/database/database.ts";
import { DatabaseFault } from "../../shared/database/errors.ts";
import { openDatabase } from "../database.ts";
import { describeFailure } from "../errors.ts";
import { readTables, type Table } from "./catalog.ts";

/** The notification channel of the triggers: not Precast's own, on which every published entry is announced. */
export const SOURCE_CHANNEL = "precast_source";

export async function withSource<T>(url: string, use: (source: Database) => Promise<T>): Promise<T> {
  const source = await openDatabase({ url, dataDir: "", queryTimeout: null, connections: 2 });
  return use(source).finally(source.close);
}

/** A fault of this database must not be taken for one of Precast's. */
export async function fromSource<T>(ask: Promise<T>): Promise<T> {
  return ask.catch((error: unknown) => {
    if (!(error instanceof DatabaseFault)) throw error;
    const text = describeFailure(error).replace("--database-url (DATABASE_URL)", "--from (PRECAST_SOURCE_URL)");
    throw new Error(`The database of your tables: ${text}`, { cause: error });
  });
}

/** The tables of these names: `posts`, or `blog.posts`. Throws an Error that names those that there are. */
export function chooseTables(tables: readonly Table[], names: readonly string[]): Table[] {
  const chosen = names.flatMap((name) => {
    const found = tables.filter((table) => table.id === name || table.name === name);
    if (found.length === 1) return found;
    const what = found.length === 0 ? `There is no table ${name}` : `There are several tables ${name}`;
    const known = (found.length === 0 ? tables : found).map(({ id }) => id).join(", ");
    throw new Error(`${what}. ${known === "" ? "The database has none." : `Specify one of ${known}.`}`);
  });
  return [...new Set(chosen)];
}

export type TriggerAction = "print" | "install" | "remove";

/** The SQL that makes the tables announce their changes, or no longer; when `action` says so, runs it. */
export async function changeTriggers(
  source: Database,
  names: readonly string[],
  action: TriggerAction,
): Promise<string> {
  const all = await source.transaction("read", readTables);
  const tables = chooseTables(all, names).filter(({ isView }) => !isView);
  const script = `${tables.map((table) => (action === "remove" ? dropTrigger(table) : makeTrigger(table))).join("\n")}\n`;
  if (action !== "print" && tables.length > 0) await source.execute(script);
  return script;
}

const TRIGGER = "precast_announce";

function dropTrigger({ sql }: Table): string {
  return `DROP TRIGGER IF EXISTS ${TRIGGER} ON ${sql};`;
}

/** The function lies beside the table: another schema may not be one that the role can write. */
function makeTrigger({ sql, schema }: Table): string {
  const name = `"${schema.replaceAll('"', '""')}".${TRIGGER}`;
  return `CREATE OR REPLACE FUNCTION ${name}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('${SOURCE_CHANNEL}', '');
  RETURN NULL;
END $$;
${dropTrigger({ sql } as Table)}
CREATE TRIGGER ${TRIGGER} AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON ${sql}
  FOR EACH STATEMENT EXECUTE FUNCTION ${name}();`;
}
