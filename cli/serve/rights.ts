/** Refuses to start a server whose counts the database would never take. */
import { type Database, sql } from "../../shared/database/database.ts";

/** What the ledger does there: see server/ledger/batch.ts. */
const NEEDED = [
  ["precast.usage", "SELECT"],
  ["precast.usage", "INSERT"],
  ["precast.usage", "UPDATE"],
  ["precast.usage_batches", "SELECT"],
  ["precast.usage_batches", "INSERT"],
  ["precast.usage_batches", "UPDATE"],
  ["precast.usage_batches", "DELETE"],
] as const;

class RightsError extends Error {
  constructor(role: string, lacking: string) {
    super(
      `The role ${role} of --database-url (DATABASE_URL) cannot count requests: it lacks ${lacking}. ` +
        `Have the owner run GRANT SELECT, INSERT, UPDATE, DELETE ON precast.usage, precast.usage_batches TO ${role}.`,
    );
    this.name = "RightsError";
  }
}

/** Throws a RightsError, or the fault of a database that is away. */
export async function needLedgerRights(database: Database): Promise<void> {
  const [row] = await database.query(
    sql(
      `SELECT quote_ident(current_user), string_agg(format('%s on %s', needed.right, needed.name), ', ')
FROM unnest($1::text[], $2::text[]) AS needed(name, "right") WHERE NOT has_table_privilege(needed.name, needed.right)`,
      [NEEDED.map(([name]) => name), NEEDED.map(([, right]) => right)],
    ),
  );
  const [role, lacking] = row ?? [];
  if (lacking != null) throw new RightsError(String(role), lacking);
}
