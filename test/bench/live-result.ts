/** The results of the `live` benchmark, and how they are printed as tables. */
import type { Measure } from "./live/compare.ts";
import { type Spread, spreadOf } from "./spread.ts";
import { drawTable } from "./table.ts";

/** The medians of all rounds. */
export type Figures = {
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
  readonly refused: number;
};

export type Read = {
  readonly row: string;
  readonly what: string;
  readonly size: number;
  /** The number of different requests: they are checked, and then sent again and again. */
  readonly requests: number;
  /** Null where Precast answered none in time. */
  readonly precast: Compared | null;
  /** The same for a server that keeps no answers. */
  readonly anew: Compared | null;
  readonly byHand: Figures;
};

/** Figures compared with those by hand: the ratio is that of requests a second, round by round. */
export type Compared = Figures & { readonly ratio: Spread };

/** Anything else that was measured: a name, its figures as text, and the aim. */
export type Noted = {
  readonly case: string;
  readonly what: string;
  readonly precast: string;
  readonly against: string;
  readonly aim: string;
};

/** What a case found: figures, and faults such as wrong answers. */
export type Found = {
  readonly reads: readonly Read[];
  readonly notes: readonly Noted[];
  readonly faults: readonly string[];
};

export function figuresOf(rounds: readonly Measure[]): Figures {
  const median = (of: (round: Measure) => number) => spreadOf(rounds.map(of)).median;
  return {
    perSecond: median((round) => round.perSecond),
    p50: median((round) => round.p50),
    p99: median((round) => round.p99),
    refused: rounds.reduce((sum, round) => sum + round.refused, 0),
  };
}

const READ_HEAD = [
  "row",
  "entries",
  "requests",
  "req/s",
  "p50 ms",
  "p99 ms",
  "anew req/s",
  "p50 ms",
  "p99 ms",
  "by hand req/s",
  "p50 ms",
  "p99 ms",
  "ratio (least to most)",
  "ratio anew",
  "growth anew",
];

export function drawReads(reads: readonly Read[]): string {
  const rows = [...new Set(reads.map(({ row }) => row))].flatMap((row) => {
    const same = reads.filter((read) => read.row === row);
    return same.map((read) => readCells(read, same));
  });
  return drawTable(READ_HEAD, (column) => column >= 1 && column <= 11, rows);
}

function readCells(read: Read, same: readonly Read[]): string[] {
  const { row, what, size, requests, precast, anew, byHand } = read;
  return [
    `${row}: ${what}`,
    size.toLocaleString("en"),
    String(requests),
    ...[precast, anew, byHand].flatMap(figureCells),
    ...[precast, anew].map((side) => (side === null ? "not answered in time" : spreadText(side.ratio))),
    read === same.at(-1) ? growthText(same) : "",
  ];
}

function figureCells(figures: Figures | null): string[] {
  if (figures === null) return ["", "", ""];
  const { perSecond, p50, p99, refused } = figures;
  const rate = perSecond < 100 ? perSecond.toFixed(1) : Math.round(perSecond).toLocaleString("en");
  return [refused === 0 ? rate : `${rate}, ${refused} refused`, ...[p50, p99].map(milliseconds)];
}

/** Empty where nothing was answered. */
function milliseconds(value: number): string {
  return Number.isNaN(value) ? "" : value.toFixed(1);
}

function spreadText({ least, median, most }: Spread): string {
  return least === most ? median.toFixed(2) : `${median.toFixed(2)} (${least.toFixed(2)} to ${most.toFixed(2)})`;
}

/** A result as one line of progress; it also remains when a benchmark is ended early. */
export function readText({ row, size, precast, anew, byHand }: Read): string {
  const text = (figures: Figures | null) => {
    if (figures === null || figures.perSecond === 0) return "nothing in time";
    const late = figures.refused === 0 ? "" : `, ${figures.refused} refused`;
    return `${figures.perSecond.toFixed(1)} requests/s, p99 ${milliseconds(figures.p99)} ms${late}`;
  };
  const ratios = [precast, anew].flatMap((side) => (side === null ? [] : [side.ratio.median.toFixed(2)]));
  const compared = ratios.length === 0 ? "" : `, ratios ${ratios.join(" and ")}`;
  return `${row} at ${size.toLocaleString("en")}: ${text(precast)}; anew ${text(anew)}; by hand ${text(byHand)}${compared}`;
}

/** For each side, how many times as long a request takes with the most entries as with the fewest. */
export function growthOf(same: readonly Read[]): { readonly precast: number; readonly byHand: number } | null {
  const [first, last] = [same[0], same.at(-1)];
  if (first === undefined || last === undefined || first === last) return null;
  const growth = (of: (read: Read) => Figures | null) => (of(first)?.perSecond ?? NaN) / (of(last)?.perSecond ?? NaN);
  return { precast: growth((read) => read.anew), byHand: growth((read) => read.byHand) };
}

function growthText(same: readonly Read[]): string {
  const growth = growthOf(same);
  const text = (factor: number) => (Number.isFinite(factor) ? `× ${factor.toFixed(1)}` : "beyond the limit");
  return growth === null ? "" : `${text(growth.precast)}, by hand ${text(growth.byHand)}`;
}

export function drawNotes(notes: readonly Noted[]): string {
  const rows = notes.map((note) => [note.case, note.what, note.precast, note.against, note.aim]);
  return drawTable(["case", "what", "Precast", "against", "aim"], () => false, rows);
}
