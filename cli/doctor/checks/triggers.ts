/** The triggers that keep what filters, searches and totals read: whether each fires when it should. */
import { sql } from "../../../shared/database/database.ts";
import { defineCheck, type Patient } from "../check.ts";
import type { Finding } from "../finding.ts";

/** Those that fire for what logical replication brings as well, and for that alone. All others fire for what is written here. */
const ALWAYS = ["keep_move", "keep_removal", "stamp_all_types", "stamp_entry", "stamp_type", "stamp_types_of_app"];
const REPLICA = ["announce_brought", "leave_row", "stamp_brought_type"];

type Facts = {
  /** `table.trigger`, and the statement that has it fire as it should. */
  readonly wrong: readonly { readonly name: string; readonly mend: string }[];
};

export const triggersCheck = defineCheck({
  name: "triggers",
  gather: readWrong,
  judge: ({ wrong }: Facts) => (wrong.length === 0 ? [] : [finding(wrong)]),
});

async function readWrong({ database }: Patient): Promise<Facts> {
  const rows = await database.query(
    sql(
      `SELECT relname || '.' || tgname, format('ALTER TABLE precast.%I ENABLE%s TRIGGER %I', relname,
    CASE due WHEN 'A' THEN ' ALWAYS' WHEN 'R' THEN ' REPLICA' ELSE '' END, tgname)
  FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid JOIN pg_proc ON pg_proc.oid = tgfoid,
  LATERAL (SELECT CASE WHEN tgname = ANY ($1::text[]) THEN 'A' WHEN tgname = ANY ($2::text[]) THEN 'R' ELSE 'O' END) AS state(due)
  WHERE relnamespace = 'precast'::regnamespace AND pronamespace = relnamespace AND NOT tgisinternal AND tgenabled::text <> due
  ORDER BY 1`,
      [ALWAYS, REPLICA],
    ),
  );
  return { wrong: rows.map(([name, mend]) => ({ name: name as string, mend: mend as string })) };
}

function finding(wrong: Facts["wrong"]): Finding {
  return {
    kind: "advice",
    subject: `triggers: ${wrong.map(({ name }) => name).join(", ")}`,
    problem: `${wrong.length === 1 ? "This one does not fire as it should" : "These do not fire as they should"}: what is written may be missing from filters, searches, totals and builds.`,
    gain: "What is written is found and counted, whoever writes it.",
    remedy: `Run ${wrong.map(({ mend }) => mend).join("; ")}; SELECT precast.keep_anew(); as the owner. Writers wait meanwhile, about a millisecond an entry.`,
    fix: null,
  };
}
