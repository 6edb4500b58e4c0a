/** Finds what keeps VACUUM from removing dead rows: transactions that stay open, and prepared transactions. */
import { sql } from "../../../shared/query.ts";
import { formatCounted } from "../../terminal/format.ts";
import { type CheckContext, defineCheck } from "../check.ts";
import type { Finding } from "../finding.ts";

/** `minutes` is how long it has been open; null when it is another role's and the current role may not see that. */
type OpenTransaction = { readonly what: string; readonly endStatement: string; readonly minutes: number | null };

export const snapshotsCheck = defineCheck({
  name: "snapshots",
  gather: readOpenTransactions,
  judge: (transactions) => [...transactions.flatMap(findingsOf), ...hiddenFindings(transactions)],
});

/** Minutes. A build of a million entries takes less. */
const LONG_MINUTES = 30;

/**
 * `endStatement` ends the transaction. Leaves out VACUUM, whose snapshot keeps no dead rows, and
 * background processes of the server (those without a role), which end by themselves.
 */
async function readOpenTransactions({ database }: CheckContext): Promise<OpenTransaction[]> {
  const rows = await database.query(
    sql(`SELECT format('A transaction of %s (process %s, %s)', coalesce(nullif(application_name, ''), usename), pid, state),
  format('SELECT pg_terminate_backend(%s)', pid), (extract(epoch FROM now() - xact_start) / 60)::text
FROM pg_stat_activity WHERE datname = current_database() AND backend_xmin IS NOT NULL AND pid <> pg_backend_pid()
  AND usesysid IS NOT NULL AND pid NOT IN (SELECT pid FROM pg_stat_progress_vacuum)
UNION ALL
SELECT format('The prepared transaction %L', gid), format('ROLLBACK PREPARED %L', gid), (extract(epoch FROM now() - prepared) / 60)::text
FROM pg_prepared_xacts WHERE database = current_database()`),
  );
  return rows.map(([what, endStatement, minutes]) => ({
    what: what as string,
    endStatement: endStatement as string,
    minutes: minutes === null ? null : Number(minutes),
  }));
}

function findingsOf({ what, endStatement, minutes }: OpenTransaction): Finding[] {
  if (minutes === null || minutes < LONG_MINUTES) return [];
  return [
    {
      kind: "advice",
      subject: "Long-running transaction",
      problem: `${what} has been open for ${Math.floor(minutes)} minutes: VACUUM cannot remove rows that have died since.`,
      gain: "VACUUM can remove dead rows, and counts stay fast.",
      remedy: `Find out why it is still open, and end it: ${endStatement}.`,
      fix: null,
    },
  ];
}

function hiddenFindings(transactions: readonly OpenTransaction[]): Finding[] {
  const hidden = transactions.filter(({ minutes }) => minutes === null).length;
  if (hidden === 0) return [];
  return [
    {
      kind: "information",
      subject: "Transactions of other roles",
      problem: `${formatCounted(hidden, "transaction")} of other roles may have been open for a second or for days: the role of --database-url lacks the right to see their age.`,
      gain: "Long-running transactions are reported, with the statement that ends each.",
      remedy: "GRANT pg_read_all_stats to the role, or run `precast doctor` with a role that has it.",
      fix: null,
    },
  ];
}
