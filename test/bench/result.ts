/** One result of the `build` benchmark, and how results are printed as a table. */
import { formatBytes } from "../../shared/text.ts";
import type { Built } from "./precast.ts";
import { type Spread, spreadOf } from "./spread.ts";
import { drawTable } from "./table.ts";
import type { Size } from "./tree.ts";

export type Result = Size & {
  readonly case: string;
  readonly what: string;
  /** The seconds of each run, in their order. */
  readonly runs: readonly number[];
  readonly seconds: Spread;
  /** The median number of files that a run wrote. Null for what does not write a tree. */
  readonly written: number | null;
  /** The median number of files that a run changed, by a comparison of the tree. Null where it was not compared. */
  readonly changed: number | null;
  readonly filesPerSecond: number | null;
  /** The most memory of all runs, in bytes. */
  readonly peak: number | null;
  readonly mode: string;
  readonly reason: string;
  readonly against: Against | null;
  readonly aim: string;
};

/** What the seconds are compared with. */
export type Against = {
  readonly what: string;
  readonly seconds: number;
  readonly ratio: number;
  /** The ratio of the seconds for one file; null where both have the same files. */
  readonly ratioPerFile: number | null;
};

export function against(what: string, reference: Spread, seconds: Spread): Against {
  return { what, seconds: reference.median, ratio: seconds.median / reference.median, ratioPerFile: null };
}

type Named = Pick<Result, "case" | "what"> & Partial<Pick<Result, "changed" | "against" | "aim">>;

export function buildResult(runs: readonly Built[], size: Size, named: Named): Result {
  const last = runs.at(-1);
  const written = spreadOf(runs.map((run) => run.written)).median;
  return {
    ...timedResult(
      runs.map((run) => run.seconds),
      size,
      named,
    ),
    written,
    filesPerSecond: written / spreadOf(runs.map((run) => run.seconds)).median,
    peak: Math.max(...runs.map((run) => run.peak ?? 0)),
    mode: last?.mode ?? "",
    reason: last?.reason ?? "",
  };
}

/** The result of something other than a build. */
export function timedResult(seconds: readonly number[], size: Size, named: Named): Result {
  return {
    changed: null,
    against: null,
    aim: "",
    written: null,
    filesPerSecond: null,
    peak: null,
    mode: "",
    reason: "",
    runs: seconds,
    seconds: spreadOf(seconds),
    ...size,
    ...named,
  };
}

const HEAD = [
  "case",
  "what",
  "mode",
  "files",
  "bytes",
  "written",
  "changed",
  "seconds (median, least to most)",
  "files/s",
  "peak RSS",
  "ratio",
  "aim",
];
const RIGHT = new Set([3, 4, 5, 6, 8, 9]);

export function drawResults(results: readonly Result[]): string {
  return drawTable(HEAD, (column) => RIGHT.has(column), results.map(cellsOf));
}

function cellsOf(result: Result): string[] {
  return [
    result.case,
    result.what,
    result.mode,
    whole(result.files),
    formatBytes(result.bytes),
    whole(result.written),
    whole(result.changed),
    secondsText(result.seconds, result.runs.length),
    whole(result.filesPerSecond),
    result.peak === null ? "" : formatBytes(result.peak),
    ratioText(result.against),
    result.aim,
  ];
}

function whole(value: number | null): string {
  return value === null ? "" : Math.round(value).toLocaleString("en");
}

function secondsText({ least, median, most }: Spread, runs: number): string {
  const text = median.toFixed(2);
  return runs === 1 ? text : `${text} (${least.toFixed(2)} to ${most.toFixed(2)}, ${runs} runs)`;
}

function ratioText(found: Against | null): string {
  if (found === null) return "";
  const digits = (ratio: number) => ratio.toFixed(ratio < 1 ? 3 : 2);
  const perFile = found.ratioPerFile === null ? "" : ` (${digits(found.ratioPerFile)} per file)`;
  return `${digits(found.ratio)} of ${found.what}, ${found.seconds.toFixed(2)} s${perFile}`;
}
