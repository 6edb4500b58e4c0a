/** Describes the build of an app in one line: what it wrote, in which mode, and why in that mode. */
import type { AppReport } from "./build/ending.ts";
import { formatBytes, formatFiles, formatSeconds } from "./terminal/format.ts";
import type { Terminal } from "./terminal/terminal.ts";

const MODES: Record<AppReport["mode"], string> = {
  full: "full",
  incremental: "incremental",
  removal: "removed",
};

export function summaryOf(report: AppReport, { colors }: Terminal, dryRun: boolean): string {
  const { key, mode, reason, written, unchanged, deleted, bytes, seconds } = report;
  const done = `${dryRun ? "would write" : "wrote"} ${formatFiles(written)}, ${unchanged} unchanged, ${deleted} deleted`;
  return `${colors.bold(key)}: ${done}, ${formatBytes(bytes)} in ${formatSeconds(seconds)} (${MODES[mode]}: ${reason})`;
}
