/** Reports a large table precast.removals, which records removed entries for trees built before the removal. */
import { sql } from "../../../shared/query.ts";
import { formatBytes, formatCount } from "../../terminal/format.ts";
import { type CheckContext, defineCheck } from "../check.ts";

type Facts = { readonly removals: number; readonly entries: number; readonly bytes: number };

export const removalsCheck = defineCheck<Facts>({
  name: "removals",
  gather: countRemovals,
  judge: ({ removals, entries, bytes }) =>
    removals < MANY || removals < entries
      ? []
      : [
          {
            kind: "information",
            subject: "precast.removals",
            problem: `It records about ${formatCount(removals)} removed entries, which is more than there are entries (${formatBytes(bytes)} with its indexes).`,
            gain: "Only disk space: builds find new records by index.",
            remedy: "Keep the records. A tree that was built before a removal still needs its record.",
            fix: null,
          },
        ],
});

const MANY = 100_000;

/** The numbers of rows are estimates of the database. */
async function countRemovals({ database }: CheckContext): Promise<Facts> {
  const [row] = await database.query(
    sql(`SELECT (SELECT reltuples::bigint FROM pg_class WHERE oid = 'precast.removals'::regclass)::text,
  (SELECT reltuples::bigint FROM pg_class WHERE oid = 'precast.entries'::regclass)::text,
  pg_total_relation_size('precast.removals')::text`),
  );
  const [removals, entries, bytes] = (row ?? []).map(Number);
  return { removals: removals ?? 0, entries: entries ?? 0, bytes: bytes ?? 0 };
}
