/** Finds types whose kept number of entries is wrong, as after writes while triggers were off. */
import { sql } from "../../../shared/query.ts";
import { formatCount } from "../../terminal/format.ts";
import { type CheckContext, defineCheck } from "../check.ts";
import type { Finding } from "../finding.ts";

/** A type by the key of its app and its slug, with its published entries as they are kept and as they are counted now. */
type Wrong = { readonly type: string; readonly kept: number; readonly counted: number };

export const totalsCheck = defineCheck({
  name: "totals",
  gather: readWrong,
  judge: (wrong) => {
    const [first] = wrong;
    return first === undefined ? [] : [findingOf(wrong, first)];
  },
});

/** In one statement, so that both are of one moment. Leaves out a logical copy, where counts arrive by themselves. */
async function readWrong({ database }: CheckContext): Promise<Wrong[]> {
  const rows = await database.query(
    sql(`SELECT app.key || '/' || type.slug, kept.total::text, coalesce(counted.total, 0)::text
FROM precast.content_types AS type JOIN precast.apps AS app ON app.id = type.app_id
CROSS JOIN LATERAL (
  SELECT coalesce(sum(change), 0) AS total FROM precast.entry_counts WHERE content_type_id = type.id) AS kept
LEFT JOIN (
  SELECT content_type_id, count(*) AS total FROM precast.entries WHERE status = 'published' GROUP BY content_type_id
) AS counted ON counted.content_type_id = type.id
WHERE kept.total <> coalesce(counted.total, 0) AND NOT precast.counts_are_brought()
ORDER BY app.key COLLATE "C", type.slug COLLATE "C"`),
  );
  return rows.map(([type, kept, counted]) => ({
    type: type as string,
    kept: Number(kept),
    counted: Number(counted),
  }));
}

function findingOf(wrong: readonly Wrong[], { type, kept, counted }: Wrong): Finding {
  const others = wrong.length === 1 ? "" : ` The same goes for ${formatCount(wrong.length - 1)} more of the types.`;
  return {
    kind: "advice",
    subject: "precast.entry_counts: wrong totals",
    problem: `${type} has ${formatCount(counted)} published entries, and ${formatCount(kept)} are kept.${others} Entries were written while triggers were off, so filters, searches and builds may miss them too.`,
    gain: "Totals are right, and every entry is found.",
    remedy:
      "Run SELECT precast.keep_anew(); as the owner of the tables. It blocks writers for about a millisecond per entry.",
    fix: null,
  };
}
