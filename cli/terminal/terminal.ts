/** What a command prints: results on standard output, the rest beside them, in colour and with bars where a person looks. */
import pc from "picocolors";
import type { Progress } from "./progress.ts";
import type { Stream } from "./stream.ts";

export type TerminalOptions = {
  readonly stdout: Stream;
  readonly stderr: Stream;
  readonly json: boolean;
  readonly quiet: boolean;
  readonly debug: boolean;
  /** Plain lines even on a terminal: CI or NO_COLOR is set. */
  readonly plain: boolean;
};

export type Terminal = {
  readonly colors: ReturnType<typeof pc.createColors>;
  /** News for a person: nothing with --quiet, on standard error with --json. */
  readonly say: (text: string) => void;
  /** What a person must know whatever was asked: always, on standard error. Of an error its message, with --debug its stack. */
  readonly warn: (what: unknown) => void;
  /** What the command was asked for: the text, or with --json the value. */
  readonly result: (text: string, value: unknown) => void;
  /** What the command was asked for in a form of its own: exactly this. */
  readonly print: (text: string) => void;
  /** How many characters a line of a drawing may have. */
  readonly width: number;
  readonly table: (head: readonly string[], rows: readonly (readonly (string | number)[])[]) => string;
  /** How a log on standard error is to be written: in sentences where a person looks, in colour if that is wanted. */
  readonly log: { readonly readable: boolean; readonly colors: boolean };
  /** Null where nobody looks. */
  readonly progress: (unit?: "files" | "entries") => Progress | null;
};

/** Of a terminal that does not tell, and of what is read in a file. */
const USUAL_WIDTH = 80;

/** What draws is loaded for a terminal alone: everywhere else a command starts sooner without it. */
export async function openTerminal(options: TerminalOptions): Promise<Terminal> {
  const { stdout, stderr, json, quiet, debug, plain } = options;
  const fancy = stdout.isTTY === true && !plain;
  const table = fancy ? (await import("./table.ts")).drawTable : tabTable;
  const bars = stderr.isTTY === true && !plain && !quiet ? await import("./progress.ts") : null;
  const colors = pc.createColors(fancy);
  return {
    colors,
    say: (text) => {
      if (!quiet) (json ? stderr : stdout).write(`${text}\n`);
    },
    warn: (what) => stderr.write(`${what instanceof Error ? (debug && what.stack) || what.message : String(what)}\n`),
    result: (text, value) => {
      if (json) stdout.write(`${JSON.stringify(value)}\n`);
      else if (text !== "") stdout.write(`${text}\n`);
    },
    print: (text) => void stdout.write(text),
    width: stdout.columns ?? USUAL_WIDTH,
    table,
    log: { readable: stderr.isTTY === true, colors: stderr.isTTY === true && !plain },
    progress: (unit = "files") => bars?.openProgress(stderr, unit) ?? null,
  };
}

function tabTable(_head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  return rows.map((row) => row.join("\t")).join("\n");
}
