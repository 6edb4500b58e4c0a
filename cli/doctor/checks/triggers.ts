/**
 * Checks that every trigger of the schema exists and fires when it should. The triggers maintain what filters,
 * searches, totals and builds read.
 */
import { sql } from "../../../shared/query.ts";
import { schemaTriggers, type Trigger } from "../../../shared/schema/triggers.ts";
import { type CheckContext, defineCheck } from "../check.ts";
import type { Finding } from "../finding.ts";

/** `firing` maps `table.trigger` to `pg_trigger.tgenabled`, for the triggers that exist. */
type Facts = { readonly expected: readonly Trigger[]; readonly firing: ReadonlyMap<string, string> };

export const triggersCheck = defineCheck({
  name: "triggers",
  gather: readFacts,
  judge: ({ expected, firing }: Facts) => {
    const wrong = expected.filter(({ name, fires }) => firing.get(name) !== fires);
    return wrong.length === 0 ? [] : [finding(wrong, firing)];
  },
});

async function readFacts({ database }: CheckContext): Promise<Facts> {
  const rows = await database.query(
    sql(`SELECT relname || '.' || tgname, tgenabled::text FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
  WHERE relnamespace = 'precast'::regnamespace AND NOT tgisinternal`),
  );
  const expected = schemaTriggers().toSorted((one, other) => (one.name < other.name ? -1 : 1));
  return { expected, firing: new Map(rows.map(([name, fires]) => [name as string, fires as string])) };
}

function finding(wrong: readonly Trigger[], firing: Facts["firing"]): Finding {
  const names = wrong.map(({ name }) => (firing.has(name) ? name : `${name} (dropped)`));
  const statements = wrong.map((trigger) => repairStatement(trigger, firing.has(trigger.name)));
  return {
    kind: "advice",
    subject: `triggers: ${names.join(", ")}`,
    problem: `${wrong.length === 1 ? "This trigger does not fire as it should" : "These triggers do not fire as they should"}: changes may be missing from filters, searches, totals and builds.`,
    gain: "All changes are found and counted, whoever makes them.",
    remedy: `Run ${statements.join(" ")} SELECT precast.keep_anew(); as the owner of the tables. It blocks writers for about a millisecond per entry.`,
    fix: null,
  };
}

function repairStatement({ create, enable, fires }: Trigger, exists: boolean): string {
  if (exists) return enable;
  return fires === "O" ? create : `${create} ${enable}`;
}
