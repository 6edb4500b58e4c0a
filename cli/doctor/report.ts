/** Formats the findings of `precast doctor` as text. */
import type { Terminal } from "../terminal/terminal.ts";
import type { CheckFinding } from "./check-run.ts";
import { canFix, isAdvice } from "./finding.ts";

export function reportText(findings: readonly CheckFinding[], { colors }: Terminal): string {
  const shown = findings
    .filter((finding) => rankOf(finding, findings) < MAX_SHOWN)
    .map((finding) => paragraphOf(finding, colors));
  const rest = findings.length - shown.length;
  const more = rest === 0 ? [] : [`… and ${rest} more: --json lists all findings.`];
  return [...shown, ...more, summaryOf(findings)].join("\n\n");
}

/** Maximum number of findings shown of each check and kind. */
const MAX_SHOWN = 10;

function rankOf(finding: CheckFinding, findings: readonly CheckFinding[]): number {
  return findings.filter(({ check, kind }) => check === finding.check && kind === finding.kind).indexOf(finding);
}

function paragraphOf(finding: CheckFinding, colors: Terminal["colors"]): string {
  const { subject, problem, gain, remedy, fix } = finding;
  const title = colors.bold(isAdvice(finding) ? colors.yellow(subject) : `${subject} (for information)`);
  const lines = [title, `  Problem  ${problem}`, `  Gain     ${gain}`, `  Remedy   ${remedy}`];
  return [...lines, ...(fix === null ? [] : fix.map((statement) => `  --fix    ${statement}`))].join("\n");
}

function summaryOf(findings: readonly CheckFinding[]): string {
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
