/** Prints a generated text, writes it into the file of `--write`, or with `--check` says whether that file is current. */
import { existsSync, readFileSync } from "node:fs";
import { outputFileSync } from "fs-extra/esm";
import { DIFFERENT, DONE } from "../command.ts";
import type { Terminal } from "../terminal.ts";

/** `report` is what `--json` says of it beside the file. */
type Generated = { readonly command: string; readonly text: string; readonly report: { readonly app: string } };

/** Returns the exit code. */
export function deliverText(
  terminal: Terminal,
  { command, text, report }: Generated,
  { file, check }: { readonly file: string | null; readonly check: boolean },
): number {
  const all = { ...report, file };
  if (file === null) {
    terminal.result(text.trimEnd(), { ...all, text });
    return DONE;
  }
  const isCurrent = existsSync(file) && readFileSync(file, "utf8") === text;
  if (check) {
    const remedy = `Run \`precast ${command}\` without --check, and commit ${file}.`;
    terminal.result(isCurrent ? `${file} is current.` : `${file} is out of date. ${remedy}`, {
      ...all,
      current: isCurrent,
    });
    return isCurrent ? DONE : DIFFERENT;
  }
  if (!isCurrent) outputFileSync(file, text);
  terminal.result(isCurrent ? `${file} was current.` : `Wrote ${file}.`, { ...all, written: !isCurrent });
  return DONE;
}
