/** Batches of counts that are remembered long after anybody could send them again. */
import { sql } from "../../../shared/database/database.ts";
import { formatCount } from "../../terminal/format.ts";
import { defineCheck, type Patient } from "../check.ts";

export const batchesCheck = defineCheck({
  name: "batches",
  gather: countForgotten,
  judge: (count) =>
    count < MANY
      ? []
      : [
          {
            kind: "advice",
            subject: "precast.usage_batches",
            problem: `${formatCount(count)} batches are remembered whose journals are gone for days: no server forgets them.`,
            gain: "The table and its indexes stay small, and sending counts fast.",
            remedy: "Delete them. A server that runs for ten minutes does so as well.",
            fix: [`DELETE FROM precast.usage_batches WHERE ${FORGOTTEN}`],
          },
        ],
});

const MANY = 10_000;
/** Servers forget them after a day. */
const FORGOTTEN = "removed_at < now() - interval '2 days'";

async function countForgotten({ database }: Patient): Promise<number> {
  const [row] = await database.query(sql(`SELECT count(*)::text FROM precast.usage_batches WHERE ${FORGOTTEN}`));
  return Number(row?.[0]);
}
