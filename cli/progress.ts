/** Draws the progress of a command as a bar on a terminal. */
import { type Options, SingleBar } from "cli-progress";
import Table from "cli-table3";

export type Progress = {
  readonly update: (progress: { readonly done: number; readonly total: number; readonly bytes?: number }) => void;
  readonly stop: () => void;
};

/** Below this total the bar is updated after each item, because each of so few may be slow. */
const FEW = 10_000;

/** Characters of the bar itself: what the line has left, within these limits. */
const SHORTEST_BAR = 5;
const LONGEST_BAR = 40;
const DEFAULT_COLUMNS = 80;

/** `unit` names the items that are counted, in the plural. */
export function openProgress(stream: Stream, unit: string): Progress {
  const size = unit === "files" ? " | {megabytes} MB" : "";
  const options: Options = {
    format: `{bar} {percentage}% | {value}/{total} ${unit}${size} | {rate} ${unit}/s | {eta_formatted} left`,
    stream: stream as NodeJS.WriteStream,
    barCompleteChar: "█",
    barIncompleteChar: "░",
    clearOnComplete: true,
    hideCursor: true,
    // The default, the pace of the last ten updates, says little about the remaining time.
    etaBuffer: 1_000,
    fps: 10,
  };
  /** With the longest texts that a build of so many files shows: 99,999.9 MB, 99,999 files a second, 99 minutes. */
  const fitted = (total: number) => {
    const text = ` 100% | ${total}/${total} ${unit}${size && " | 99999.9 MB"} | 99999 ${unit}/s | 99m59s left`;
    const room = (stream.columns ?? DEFAULT_COLUMNS) - text.length - 1;
    return new SingleBar({ ...options, barsize: Math.max(SHORTEST_BAR, Math.min(LONGEST_BAR, room)) });
  };
  let bar: SingleBar | null = null;
  let start = 0;
  let last = { done: 0, total: 0 };
  return {
    update: ({ done, total, bytes = 0 }) => {
      // Some commands count each app for itself.
      if (total !== last.total || done < last.done) {
        bar?.stop();
        start = performance.now();
        bar = fitted(total);
        bar.start(total, 0, { megabytes: "0.0", rate: 0 });
      }
      last = { done, total };
      const seconds = Math.max((performance.now() - start) / 1_000, 0.001);
      if (done % 100 === 0 || total < FEW || done === total)
        bar?.update(done, { megabytes: (bytes / 1e6).toFixed(1), rate: Math.round(done / seconds) });
    },
    stop: () => bar?.stop(),
  };
}

// Draws a table for a person.

/** No line between two rows. */
const NO_RULES = { mid: "", "left-mid": "", "mid-mid": "", "right-mid": "" };

/** A number, a size or a share, or nothing: a column of these is aligned at its right. */
const NUMERIC = /^([\d,.]+( ([kMGT]?B|%))?)?$/;

export function drawTable(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const isNumeric = (column: number) => rows.every((row) => NUMERIC.test(String(row[column])));
  const table = new Table({
    head: [...head],
    style: { head: ["bold"], border: ["gray"] },
    chars: NO_RULES,
    colAligns: head.map((_, column) => (isNumeric(column) ? "right" : "left")),
  });
  table.push(...rows.map((row) => row.map(String)));
  return table.toString();
}

/** Where a command prints: a terminal, a pipe or a file. */
export type Stream = {
  readonly isTTY?: boolean;
  /** Characters in a line; only on a terminal that reports it. */
  readonly columns?: number;
  readonly write: (text: string) => unknown;
};
