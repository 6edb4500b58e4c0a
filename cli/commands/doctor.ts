/** `precast doctor`: reports what to improve in the database, the content and the requests, and applies safe fixes. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Database } from "../../shared/database/database.ts";
import { DatabaseFault, isCancelled, isConflict, isReadOnly } from "../../shared/database/errors.ts";
import { sql } from "../../shared/sql/query.ts";
import { formatSeconds } from "../../shared/text.ts";
import { DIFFERENT, DONE, defineCommand } from "../command.ts";
import { withDatabase } from "../database.ts";
import { canFix, isAdvice } from "../doctor/check.ts";
import { type CheckFinding, runChecks } from "../doctor/checks.ts";
import type { Terminal } from "../terminal.ts";

/** Milliseconds that reading the facts rarely takes. */
const PATIENCE = 10_000;
const STILL_WAITING =
  "The database has not told everything after 10 seconds. If it is not large, another session may hold a lock on its tables: SELECT * FROM pg_stat_activity WHERE wait_event_type = 'Lock' shows who waits.";

export const doctorCommand = defineCommand({
  name: "doctor",
  describes:
    "recommend changes to the database, content and requests, and say what each gains; exit code 2 when there is advice",
  argument: null,
  settings: ["fix", "connections", "workers"],
  examples: ["precast doctor", "precast doctor --fix"],
  run: async ({ terminal, now }, settings) => {
    const { fixed, left } = await withDatabase(settings, async (database) => {
      const check = (names?: readonly string[]) => runChecks(database, settings, now(), names);
      const waiting = setTimeout(() => terminal.warn(STILL_WAITING), PATIENCE);
      const findings = await check().finally(() => clearTimeout(waiting));
      return settings.fix ? applyFixes(database, findings, terminal, check) : { fixed: [], left: findings };
    });
    terminal.result(reportText(left, terminal), { findings: left, fixed });
    return left.some(isAdvice) ? DIFFERENT : DONE;
  },
});

// Applies the safe fixes: runs the statements of the findings and reports each of them.

type FixResult = { readonly fixed: readonly CheckFinding[]; readonly left: readonly CheckFinding[] };

/**
 * `check` runs the named checks again, which tells whether a fix has helped. Warns of a statement that fails or does not
 * help, and keeps its finding in `left`. Throws a DatabaseFault when the database is unavailable, and its error when the
 * database is read-only.
 */
async function applyFixes(
  database: Database,
  findings: readonly CheckFinding[],
  terminal: Terminal,
  check: (names: readonly string[]) => Promise<readonly CheckFinding[]>,
): Promise<FixResult> {
  const fixed: CheckFinding[] = [];
  for (const finding of findings) {
    if (canFix(finding) && (await runAll(database, finding.fix, terminal))) fixed.push(finding);
  }
  if (fixed.length === 0) return { fixed, left: findings };
  await awaitStatistics(database);
  const again = await check([...new Set(fixed.map(({ check }) => check))]);
  const remains = ({ check, subject }: CheckFinding) =>
    again.find((one) => one.check === check && one.subject === subject);
  for (const { subject } of fixed.filter(remains))
    terminal.warn(`${subject}: the fix was applied and did not help. Something else has to change first.`);
  terminal.say("");
  return {
    fixed: fixed.filter((finding) => remains(finding) === undefined),
    left: findings.flatMap((finding) => (fixed.includes(finding) ? (remains(finding) ?? []) : finding)),
  };
}

/** The first version of PostgreSQL that shows at once what has been counted (`server_version_num`). */
const PROMPT_STATISTICS = 150_000;
/** Milliseconds: older versions show counts that are up to half a second old. */
const STATISTICS_AGE = 600;

/** Waits until the statistics include the fixes: the next `precast doctor` would find again what was just fixed. */
async function awaitStatistics(database: Database): Promise<void> {
  const [row] = await database.query(sql("SELECT current_setting('server_version_num')"));
  if (Number(row?.[0]) < PROMPT_STATISTICS) await sleep(STATISTICS_AGE);
}

async function runAll(database: Database, statements: readonly string[], terminal: Terminal): Promise<boolean> {
  for (const statement of statements) {
    const start = performance.now();
    try {
      await database.execute(statement);
    } catch (error) {
      if (error instanceof DatabaseFault && !isConflict(error) && !isCancelled(error)) throw error;
      if (isReadOnly(error)) throw error;
      terminal.warn(`${statement}: failed, ${error instanceof Error ? error.message : String(error)}`);
      return false;
    }
    terminal.say(`${statement}: done in ${formatSeconds((performance.now() - start) / 1_000)}`);
  }
  return true;
}

// Formats the findings of `precast doctor` as text.

/** Maximum number of findings shown of each check and kind. */
const MAX_SHOWN = 10;

export function reportText(findings: readonly CheckFinding[], { colors }: Terminal): string {
  const shown = findings.filter(({ check, kind }, index) => {
    const before = findings.slice(0, index).filter((other) => other.check === check && other.kind === kind);
    return before.length < MAX_SHOWN;
  });
  const rest = findings.length - shown.length;
  const more = rest === 0 ? [] : [`… and ${rest} more: --json lists all findings.`];
  return [...shown.map((finding) => writeFinding(finding, colors)), ...more, summarizeFindings(findings)].join("\n\n");
}

function writeFinding(finding: CheckFinding, colors: Terminal["colors"]): string {
  const { subject, problem, gain, remedy, fix } = finding;
  const title = colors.bold(isAdvice(finding) ? colors.yellow(subject) : `${subject} (for information)`);
  const lines = [title, `  Problem  ${problem}`, `  Gain     ${gain}`, `  Remedy   ${remedy}`];
  return [...lines, ...(fix === null ? [] : fix.map((statement) => `  --fix    ${statement}`))].join("\n");
}

function summarizeFindings(findings: readonly CheckFinding[]): string {
  const advice = findings.filter(isAdvice);
  const safe = advice.filter(canFix).length;
  const informational = findings.length - advice.length;
  const parts = [
    advice.length === 0
      ? "Nothing to change"
      : `${advice.length} to change${safe === 0 ? "" : ` (${safe} with --fix)`}`,
    ...(informational === 0 ? [] : [`${informational} for information`]),
  ];
  return `${parts.join(", ")}.`;
}
