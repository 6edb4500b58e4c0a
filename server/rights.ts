/** Refuses to start a server whose database role lacks the rights to answer requests or to store their counts. */
import type { Database } from "../shared/database/database.ts";
import { sql } from "../shared/sql/query.ts";

/** Tables that live queries read: see shared/sql and shared/apps.ts. */
const READ = [
  "precast.apps",
  "precast.content_types",
  "precast.fields",
  "precast.entries",
  "precast.entry_counts",
  "precast.entry_words",
  "precast.slots",
  "precast.terms",
  "precast.value_counts",
];

/** Functions that live queries call, directly or through other functions. */
const CALLED = [
  "are_terms",
  "cut_terms",
  "double",
  "elements",
  "holds_elements",
  "is_day",
  "is_instant",
  "is_unspaced",
  "is_uuid",
  "keys_with",
  "term_key",
  "term_keys",
  "terms_in",
  "unspaced",
];

/** Rights that the ledger needs: see server/ledger/outbox.ts. */
const COUNTED = [
  ["precast.usage", "SELECT"],
  ["precast.usage", "INSERT"],
  ["precast.usage", "UPDATE"],
  ["precast.usage_batches", "SELECT"],
  ["precast.usage_batches", "INSERT"],
  ["precast.usage_batches", "UPDATE"],
  ["precast.usage_batches", "DELETE"],
] as const;

/** What to GRANT for each kind of right. */
const GRANTS: Readonly<Record<string, string>> = {
  read: "SELECT ON ALL TABLES IN SCHEMA precast",
  call: "EXECUTE ON ALL FUNCTIONS IN SCHEMA precast",
  count: "SELECT, INSERT, UPDATE, DELETE ON precast.usage, precast.usage_batches",
};

/**
 * One row for each kind of right that is lacking. A role may have been granted single columns of a table: any of them
 * passes here, because only the queries show whether they are enough.
 */
const LACKING = `SELECT quote_ident(current_user), kind, string_agg(lacking, ', ' ORDER BY place) FROM (
  SELECT 'read', format('SELECT on %s', name), place FROM unnest($1::text[]) WITH ORDINALITY AS needed(name, place)
  WHERE NOT has_any_column_privilege(name, 'SELECT')
  UNION ALL
  SELECT DISTINCT 'call', format('EXECUTE on precast.%s', name), place FROM unnest($2::text[]) WITH ORDINALITY AS needed(name, place)
  JOIN pg_proc ON proname = name AND pronamespace = 'precast'::regnamespace WHERE NOT has_function_privilege(pg_proc.oid, 'EXECUTE')
  UNION ALL
  SELECT 'count', format('%s on %s', needed.right, name), place FROM unnest($3::text[], $4::text[]) WITH ORDINALITY AS needed(name, "right", place)
  WHERE NOT has_table_privilege(name, needed.right)
) AS lacking(kind, lacking, place) GROUP BY kind ORDER BY kind DESC`;

/** The tables of which row-level security hides rows from the role. Every statement that reads them fails. */
const HIDDEN = `SELECT current_user::text, relname::text FROM pg_class
WHERE relnamespace = 'precast'::regnamespace AND relrowsecurity AND row_security_active(oid) ORDER BY relname`;

class RightsError extends Error {
  constructor(role: string, fault: string, remedies: readonly string[]) {
    super(
      `The role ${role} of --database-url (DATABASE_URL) cannot answer requests and count them: ${fault}. ` +
        `Have the owner run ${remedies.join("; ")}.`,
    );
    this.name = "RightsError";
  }
}

/** Throws a RightsError when rights are lacking, and a DatabaseFault when the database is unavailable. */
export async function assertRights(database: Database): Promise<void> {
  const rows = await database.query(
    sql(LACKING, [READ, CALLED, COUNTED.map(([name]) => name), COUNTED.map(([, right]) => right)]),
  );
  const [lacking] = rows;
  if (lacking !== undefined) {
    const role = lacking[0] as string;
    const grants = rows.map((row) => `GRANT ${GRANTS[row[1] as string]} TO ${role}`);
    throw new RightsError(role, `it lacks ${rows.map((row) => row[2]).join(", ")}`, grants);
  }
  const hidden = await database.query(sql(HIDDEN));
  const [table] = hidden;
  if (table === undefined) return;
  const names = hidden.map((row) => `precast.${row[1]}`).join(", ");
  const remedies = hidden.map((row) => `ALTER TABLE precast.${row[1]} DISABLE ROW LEVEL SECURITY`);
  const role = table[0] as string;
  throw new RightsError(role, `row-level security hides rows of ${names}`, [
    `${remedies.join("; ")}, or a superuser ALTER ROLE ${role} BYPASSRLS`,
  ]);
}
