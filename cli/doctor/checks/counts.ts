/** Finds counts that writers have left in many rows: every list adds them up. */
import { sql } from "../../../shared/query.ts";
import { formatCount } from "../../terminal/format.ts";
import { type CheckContext, defineCheck } from "../check.ts";
import { statementRemedy } from "../finding.ts";

/** Rows of the type that has the most, and whether the role may add them up. */
type Facts = { readonly most: number; readonly mayFold: boolean };

export const countsCheck = defineCheck<Facts>({
  name: "counts",
  gather: readCounts,
  judge: ({ most, mayFold }) =>
    most < MANY
      ? []
      : [
          {
            kind: "advice",
            subject: "precast.entry_counts",
            problem: `The entries of one type are counted in ${formatCount(most)} rows: transactions at REPEATABLE READ or SERIALIZABLE leave one for each statement, and only builds add them up.`,
            gain: "Lists read one row in place of all of them for their totals.",
            ...statementRemedy(mayFold, "the owner of the schema", [STATEMENT], NOTE),
          },
        ],
});

/** Adding up this many rows takes as long as the rest of a fast list. */
const MANY = 1_000;
const STATEMENT = "SELECT precast.fold_crowded()";
const NOTE = "It does not block writers. Run it regularly, or a build.";

/** Leaves out a logical copy, which must keep the rows that it is sent (schema/0007_counts.sql). */
async function readCounts({ database }: CheckContext): Promise<Facts> {
  const [row] = await database.query(
    sql(`SELECT (SELECT coalesce(max(rows), 0) FROM (
    SELECT count(*) AS rows FROM precast.entry_counts GROUP BY content_type_id) AS types WHERE NOT precast.counts_are_brought())::text,
  has_function_privilege('precast.fold_crowded()', 'EXECUTE')::text`),
  );
  return { most: Number(row?.[0]), mayFold: row?.[1] === "true" };
}
