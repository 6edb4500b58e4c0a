/** Finds ids of usage batches that are stored long after any server could send the batch again. */
import { sql } from "../../../shared/query.ts";
import { formatCount } from "../../terminal/format.ts";
import { type CheckContext, defineCheck } from "../check.ts";
import { statementRemedy } from "../finding.ts";

type Facts = { readonly count: number; readonly mayDelete: boolean };

export const batchesCheck = defineCheck<Facts>({
  name: "batches",
  gather: countExpired,
  judge: ({ count, mayDelete }) =>
    count < MANY
      ? []
      : [
          {
            kind: "advice",
            subject: "precast.usage_batches",
            problem: `The ids of ${formatCount(count)} batches are still stored, although their journals were deleted more than two days ago: no running server deletes them.`,
            gain: "The table and its indexes stay small, and counts are stored quickly.",
            ...statementRemedy(mayDelete, "the owner of the table", [STATEMENT], NOTE),
          },
        ],
});

const MANY = 10_000;
/** Servers delete such rows after one day; two days leave them time to do so. */
const EXPIRED = "removed_at < now() - interval '2 days'";
const STATEMENT = `DELETE FROM precast.usage_batches WHERE ${EXPIRED}`;
const NOTE = "A running server deletes 10,000 of them every ten minutes.";

async function countExpired({ database }: CheckContext): Promise<Facts> {
  const [row] = await database.query(
    sql(`SELECT count(*)::text, has_table_privilege('precast.usage_batches', 'DELETE')::text
FROM precast.usage_batches WHERE ${EXPIRED}`),
  );
  return { count: Number(row?.[0]), mayDelete: row?.[1] === "true" };
}
