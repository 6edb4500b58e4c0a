/** Draws the progress of a command as a bar on a terminal. */
import { SingleBar } from "cli-progress";
import Table from "cli-table3";

export type Progress = {
  readonly update: (progress: { readonly done: number; readonly total: number; readonly bytes?: number }) => void;
  readonly stop: () => void;
};

/** Below this total the bar is updated after each item, because each of so few may be slow. */
const FEW = 10_000;

/** `unit` names the items that are counted, in the plural. */
export function openProgress(stream: Stream, unit: string): Progress {
  const size = unit === "files" ? " | {megabytes} MB" : "";
  const bar = new SingleBar({
    format: `{bar} {percentage}% | {value}/{total} ${unit}${size} | {rate} ${unit}/s | {eta_formatted} left`,
    stream: stream as NodeJS.WriteStream,
    barCompleteChar: "█",
    barIncompleteChar: "░",
    clearOnComplete: true,
    hideCursor: true,
    // The default, the pace of the last ten updates, says little about the remaining time.
    etaBuffer: 1_000,
    fps: 10,
  });
  let start = 0;
  let last = { done: 0, total: 0 };
  return {
    update: ({ done, total, bytes = 0 }) => {
      // Some commands count each app for itself.
      if (total !== last.total || done < last.done) {
        bar.stop();
        start = performance.now();
        bar.start(total, 0, { megabytes: "0.0", rate: 0 });
      }
      last = { done, total };
      const seconds = Math.max((performance.now() - start) / 1_000, 0.001);
      if (done % 100 === 0 || total < FEW || done === total)
        bar.update(done, { megabytes: (bytes / 1e6).toFixed(1), rate: Math.round(done / seconds) });
    },
    stop: () => bar.stop(),
  };
}

// Draws a table for a person.

/** No line between two rows. */
const NO_RULES = { mid: "", "left-mid": "", "mid-mid": "", "right-mid": "" };

export function drawTable(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const table = new Table({ head: [...head], style: { head: ["bold"], border: ["gray"] }, chars: NO_RULES });
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
