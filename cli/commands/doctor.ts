/** `precast doctor`: reports what to improve in the database, the content and the requests, and applies safe fixes. */
import { DIFFERENT, DONE, defineCommand } from "../command.ts";
import { withDatabase } from "../database.ts";
import { canFix, isAdvice } from "../doctor/check.ts";
import { applyFixes, type CheckFinding, runChecks } from "../doctor/doctor.ts";
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

// Formats the findings of `precast doctor` as text.

export function reportText(findings: readonly CheckFinding[], { colors }: Terminal): string {
  const shown = findings
    .filter((finding) => rankFinding(finding, findings) < MAX_SHOWN)
    .map((finding) => writeFinding(finding, colors));
  const rest = findings.length - shown.length;
  const more = rest === 0 ? [] : [`… and ${rest} more: --json lists all findings.`];
  return [...shown, ...more, summarizeFindings(findings)].join("\n\n");
}

/** Maximum number of findings shown of each check and kind. */
const MAX_SHOWN = 10;

function rankFinding(finding: CheckFinding, findings: readonly CheckFinding[]): number {
  return findings.filter(({ check, kind }) => check === finding.check && kind === finding.kind).indexOf(finding);
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
