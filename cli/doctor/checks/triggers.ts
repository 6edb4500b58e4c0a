/**
 * Checks that every trigger of the schema exists and fires when it should. The triggers maintain what filters,
 * searches, totals and builds read.
 */
import { sql } from "../../../shared/query.ts";
import { schemaTriggers, type Trigger } from "../../../shared/schema/drift.ts";
import { type CheckContext, defineCheck } from "../check.ts";
import type { Finding } from "../finding.ts";

type Facts = {
  readonly expected: readonly Trigger[];
  /** Maps `table.trigger` to `pg_trigger.tgenabled`, for the triggers that exist. */
  readonly firing: ReadonlyMap<string, string>;
  /** The tables on which triggers of PostgreSQL's own are off, which check keys (`DISABLE TRIGGER ALL`). */
  readonly unchecked: readonly string[];
};

export const triggersCheck = defineCheck({
  name: "triggers",
  gather: readFacts,
  judge: ({ expected, firing, unchecked }: Facts) => {
    const wrong = expected.filter(({ name, fires }) => firing.get(name) !== fires);
    return [
      ...unchecked.map((table) => keysFinding(table, expected)),
      ...(wrong.length === 0 ? [] : [finding(wrong, firing)]),
    ];
  },
});

async function readFacts({ database }: CheckContext): Promise<Facts> {
  const rows = await database.query(
    sql(`SELECT relname::text, relname || '.' || tgname, tgenabled::text, tgisinternal::text
  FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
  WHERE relnamespace = 'precast'::regnamespace ORDER BY relname`),
  );
  const ofKeys = rows.filter(([, , , isInternal]) => isInternal === "true");
  const own = rows.filter((row) => !ofKeys.includes(row));
  const off = ofKeys.filter(([, , fires]) => fires !== "O");
  return {
    expected: schemaTriggers().toSorted((one, other) => (one.name < other.name ? -1 : 1)),
    firing: new Map(own.map(([, name, fires]) => [name as string, fires as string])),
    unchecked: [...new Set(off.map(([table]) => table as string))],
  };
}

/** The statement that switches them on sets every trigger of the table to the same mode, which is not that of some. */
function keysFinding(table: string, expected: readonly Trigger[]): Finding {
  const others = expected.filter(({ name, fires }) => name.startsWith(`${table}.`) && fires !== "O");
  const statements = [`ALTER TABLE precast.${table} ENABLE TRIGGER ALL;`, ...others.map(({ enable }) => enable)];
  return {
    kind: "advice",
    subject: `precast.${table}: unchecked keys`,
    problem:
      "The triggers by which PostgreSQL checks its foreign keys are off: rows may refer to others that do not exist.",
    gain: "The database refuses such rows.",
    remedy: `Run ${statements.join(" ")} as a superuser.`,
    fix: null,
  };
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
