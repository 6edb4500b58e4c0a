/** What a command prints: results on standard output, the rest beside them, in colour and with bars where a person looks. */
import { SingleBar } from "cli-progress";
import Table from "cli-table3";
import pc from "picocolors";

export type Stream = { readonly isTTY?: boolean; readonly write: (text: string) => unknown };

export type TerminalOptions = {
  readonly stdout: Stream;
  readonly stderr: Stream;
  readonly json: boolean;
  readonly quiet: boolean;
  readonly debug: boolean;
  /** Plain lines even on a terminal: CI or NO_COLOR is set. */
  readonly plain: boolean;
};

export type Progress = {
  readonly update: (progress: { files: number; totalFiles: number; bytes: number }) => void;
  readonly stop: () => void;
};

export type Terminal = {
  readonly colors: ReturnType<typeof pc.createColors>;
  /** News for a person: nothing with --quiet, on standard error with --json. */
  readonly say: (text: string) => void;
  /** What a person must know whatever was asked: always, on standard error. Of an error its message, with --debug its stack. */
  readonly warn: (what: unknown) => void;
  /** What the command was asked for: the text, or with --json the value. */
  readonly result: (text: string, value: unknown) => void;
  readonly table: (head: readonly string[], rows: readonly (readonly (string | number)[])[]) => string;
  /** Null where nobody looks. */
  readonly progress: () => Progress | null;
};

export function openTerminal({ stdout, stderr, json, quiet, debug, plain }: TerminalOptions): Terminal {
  const fancy = stdout.isTTY === true && !plain;
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
    table: (head, rows) => (fancy ? drawTable(head, rows) : rows.map((row) => row.join("\t")).join("\n")),
    progress: () => (stderr.isTTY === true && !plain && !quiet ? openProgress(stderr) : null),
  };
}

/** No line between two rows. */
const NO_RULES = { mid: "", "left-mid": "", "mid-mid": "", "right-mid": "" };

function drawTable(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const table = new Table({ head: [...head], style: { head: ["bold"], border: ["gray"] }, chars: NO_RULES });
  table.push(...rows.map((row) => row.map(String)));
  return table.toString();
}

function openProgress(stream: Stream): Progress {
  const bar = new SingleBar({
    format: "{bar} {percentage}% | {value}/{total} files | {megabytes} MB | {rate} files/s | {eta_formatted} left",
    stream: stream as NodeJS.WriteStream,
    barCompleteChar: "█",
    barIncompleteChar: "░",
    clearOnComplete: true,
    hideCursor: true,
    fps: 10,
  });
  let start: number | null = null;
  return {
    update: ({ files, totalFiles, bytes }) => {
      if (start === null) {
        start = performance.now();
        bar.start(totalFiles, 0, { megabytes: "0.0", rate: 0 });
      }
      const seconds = Math.max((performance.now() - start) / 1_000, 0.001);
      if (files % 100 === 0)
        bar.update(files, { megabytes: (bytes / 1e6).toFixed(1), rate: Math.round(files / seconds) });
    },
    stop: () => bar.stop(),
  };
}
