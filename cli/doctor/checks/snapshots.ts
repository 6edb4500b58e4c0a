/** What keeps the database from clearing away dead rows: transactions that never end, and what stands for them. */
import { sql } from "../../../shared/database/database.ts";
import { formatCounted } from "../../terminal/format.ts";
import { defineCheck, type Patient } from "../check.ts";
import type { Finding } from "../finding.ts";

/** How long it is open is null where it is another role's, and ours may not see that. */
type Holder = { readonly what: string; readonly end: string; readonly minutes: number | null };

export const snapshotsCheck = defineCheck({
  name: "snapshots",
  gather: readHolders,
  judge: (holders) => [...holders.flatMap(findingsOf), ...hiddenFindings(holders)],
});

/** Minutes. A build of a million entries is done by then. */
const LONG = 30;

/** Each with the statement that ends it. What VACUUM itself sees keeps no row, and the work of the server that nobody asked for ends. */
async function readHolders({ database }: Patient): Promise<Holder[]> {
  const rows = await database.query(
    sql(`SELECT format('A transaction of %s (process %s, %s)', coalesce(nullif(application_name, ''), usename), pid, state),
  format('SELECT pg_terminate_backend(%s)', pid), (extract(epoch FROM now() - xact_start) / 60)::text
FROM pg_stat_activity WHERE datname = current_database() AND backend_xmin IS NOT NULL AND pid <> pg_backend_pid()
  AND usesysid IS NOT NULL AND pid NOT IN (SELECT pid FROM pg_stat_progress_vacuum)
UNION ALL
SELECT format('The prepared transaction %L', gid), format('ROLLBACK PREPARED %L', gid), (extract(epoch FROM now() - prepared) / 60)::text
FROM pg_prepared_xacts WHERE database = current_database()`),
  );
  return rows.map(([what, end, minutes]) => ({
    what: what as string,
    end: end as string,
    minutes: minutes === null ? null : Number(minutes),
  }));
}

function findingsOf({ what, end, minutes }: Holder): Finding[] {
  if (minutes === null || minutes < LONG) return [];
  return [
    {
      kind: "advice",
      subject: "A transaction that does not end",
      problem: `${what} is open for ${Math.floor(minutes)} minutes: no row that died since can be cleared away.`,
      gain: "VACUUM can clear away dead rows, and counts stay fast.",
      remedy: `Find out why, and end it: ${end}.`,
      fix: null,
    },
  ];
}

function hiddenFindings(holders: readonly Holder[]): Finding[] {
  const hidden = holders.filter(({ minutes }) => minutes === null).length;
  if (hidden === 0) return [];
  return [
    {
      kind: "information",
      subject: "Transactions of other roles",
      problem: `${formatCounted(hidden, "transaction")} of other roles may be open for a second or for days: the role of --database-url may not see that.`,
      gain: "Those that do not end are told, with what ends them.",
      remedy: "GRANT pg_read_all_stats to the role, or examine the database as one that has it.",
      fix: null,
    },
  ];
}
