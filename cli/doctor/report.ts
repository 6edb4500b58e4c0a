/** Formats the findings of `precast doctor` as text. */
import type { Terminal } from "../terminal/terminal.ts";
import type { Found } from "./examination.ts";
import { canFix, isAdvice } from "./finding.ts";

export function reportText(found: readonly Found[], { colors }: Terminal): string {
  const shown = found.filter((one) => placeOf(one, found) < MOST).map((one) => paragraphOf(one, colors));
  const rest = found.length - shown.length;
  const more = rest === 0 ? [] : [`… and ${rest} more like them: --json tells all.`];
  return [...shown, ...more, summaryOf(found)].join("\n\n");
}

/** Maximum number of findings shown of each check and kind. */
const MOST = 10;

function placeOf(one: Found, found: readonly Found[]): number {
  return found.filter(({ check, kind }) => check === one.check && kind === one.kind).indexOf(one);
}

function paragraphOf(one: Found, colors: Terminal["colors"]): string {
  const { subject, problem, gain, remedy, fix } = one;
  const title = colors.bold(isAdvice(one) ? colors.yellow(subject) : `${subject} (to know of)`);
  const lines = [title, `  Found    ${problem}`, `  Brings   ${gain}`, `  Do       ${remedy}`];
  return [...lines, ...(fix === null ? [] : fix.map((statement) => `  --fix    ${statement}`))].join("\n");
}

function summaryOf(found: readonly Found[]): string {
  const advice = found.filter(isAdvice);
  const safe = advice.filter(canFix).length;
  const known = found.length - advice.length;
  const parts = [
    advice.length === 0
      ? "Nothing to change"
      : `${advice.length} to change${safe === 0 ? "" : ` (${safe} with --fix)`}`,
    ...(known === 0 ? [] : [`${known} to know of`]),
  ];
  return `${parts.join(", ")}.`;
}
