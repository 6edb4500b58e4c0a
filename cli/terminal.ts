/** Prints the output of a command: results, messages and warnings, with colours and progress bars on a terminal. */
import pc from "picocolors";
import type { Progress, Stream } from "./progress.ts";

type TerminalOptions = {
  readonly stdout: Stream;
  readonly stderr: Stream;
  readonly json: boolean;
  readonly quiet: boolean;
  /** Plain lines even on a terminal: CI or NO_COLOR is set. */
  readonly plain: boolean;
};

export type Terminal = {
  readonly colors: ReturnType<typeof pc.createColors>;
  /** Prints a message for a person: not with --quiet, and to standard error with --json. */
  readonly say: (text: string) => void;
  /** Prints a warning to standard error, whatever the options. */
  readonly warn: (text: string) => void;
  /** Prints the result of the command: the text, or with --json the value. */
  readonly result: (text: string, value: unknown) => void;
  /** Prints a result in another format (such as CSV) as it is. */
  readonly print: (text: string) => void;
  /** Maximum number of characters in a line of a drawing. */
  readonly width: number;
  readonly table: (head: readonly string[], rows: readonly (readonly (string | number)[])[]) => string;
  /** How to write a log to standard error: `readable` means in sentences, for a terminal. */
  readonly log: { readonly readable: boolean; readonly colors: boolean };
  /** Null with --quiet, with `plain`, and when standard error is not a terminal. */
  readonly progress: (unit?: "files" | "entries" | "kB") => Progress | null;
};

/** Width for files and pipes, and for terminals that do not report one. */
export const DEFAULT_WIDTH = 80;

/** Imports the code for tables and bars only on a terminal: without it, a command starts sooner. */
export async function openTerminal(options: TerminalOptions): Promise<Terminal> {
  const { stdout, stderr, json, quiet, plain } = options;
  const fancy = stdout.isTTY === true && !plain;
  const table = fancy ? (await import("./progress.ts")).drawTable : tabTable;
  const bars = stderr.isTTY === true && !plain && !quiet ? await import("./progress.ts") : null;
  const colors = pc.createColors(fancy);
  return {
    colors,
    say: (text) => {
      if (!quiet) (json ? stderr : stdout).write(`${text}\n`);
    },
    warn: (text) => void stderr.write(`${text}\n`),
    result: (text, value) => {
      if (json) stdout.write(`${JSON.stringify(value)}\n`);
      else if (text !== "") stdout.write(`${text}\n`);
    },
    print: (text) => void stdout.write(text),
    width: stdout.columns ?? DEFAULT_WIDTH,
    table,
    log: { readable: stderr.isTTY === true, colors: stderr.isTTY === true && !plain },
    progress: (unit = "files") => bars?.openProgress(stderr, unit) ?? null,
  };
}

function tabTable(_head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  return rows.map((row) => row.join("\t")).join("\n");
}
