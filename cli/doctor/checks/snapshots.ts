/** What keeps the database from clearing away dead rows: transactions that never end, and what stands for them. */
import { sql } from "../../../shared/database/database.ts";
import { defineCheck, type Patient } from "../check.ts";
import type { Finding } from "../finding.ts";

type Holder = { readonly what: string; readonly end: string; readonly minutes: number };

export const snapshotsCheck = defineCheck({
  name: "snapshots",
  gather: readHolders,
  judge: (holders) => holders.filter(({ minutes }) => minutes >= LONG).map(findingOf),
});

/** Minutes. A build of a million entries is done by then. */
const LONG = 30;

/** Each with the statement that ends it. */
async function readHolders({ database }: Patient): Promise<Holder[]> {
  const rows = await database.query(
    sql(`SELECT format('A transaction of %s (process %s, %s)', coalesce(nullif(application_name, ''), usename), pid, state),
  format('SELECT pg_terminate_backend(%s)', pid), (extract(epoch FROM now() - xact_start) / 60)::text
FROM pg_stat_activity WHERE datname = current_database() AND backend_xmin IS NOT NULL AND pid <> pg_backend_pid()
UNION ALL
SELECT format('The prepared transaction %L', gid), format('ROLLBACK PREPARED %L', gid), (extract(epoch FROM now() - prepared) / 60)::text
FROM pg_prepared_xacts WHERE database = current_database()`),
  );
  return rows.map(([what, end, minutes]) => ({ what: what as string, end: end as string, minutes: Number(minutes) }));
}

function findingOf({ what, end, minutes }: Holder): Finding {
  return {
    kind: "advice",
    subject: "A transaction that does not end",
    problem: `${what} is open for ${Math.floor(minutes)} minutes: no row that died since can be cleared away.`,
    gain: "VACUUM can clear away dead rows, and counts stay fast.",
    remedy: `Find out why, and end it: ${end}.`,
    fix: null,
  };
}
