/** The results of the `serve` benchmark for one server under one load, and how they are printed as a table. */
import { formatBytes } from "../../shared/text.ts";
import { type Spread, spreadOf } from "./spread.ts";
import { drawTable } from "./table.ts";
import { percentile, type Seen, tookOf } from "./traffic.ts";

export type Row = {
  readonly case: string;
  readonly what: string;
  /** The number of answers in all rounds. */
  readonly answers: number;
  readonly perSecond: Spread;
  /** Microseconds of CPU for one answer; null where it cannot be read. */
  readonly cpu: Spread | null;
  /** Milliseconds. */
  readonly p50: Spread;
  readonly p99: Spread;
  /** Bytes, after the last round. */
  readonly memory: number | null;
  /** Milliseconds from the start of the process until it took connections. */
  readonly start: number | null;
  readonly ratios: readonly Ratio[];
  readonly aim: string;
};

/** Compared round by round, so that what disturbs the machine for a while disturbs both. */
export type Ratio = { readonly of: string; readonly to: string; readonly ratio: Spread };

/** The figures of one round. */
export type Round = {
  readonly answers: number;
  readonly perSecond: number;
  readonly cpu: number | null;
  readonly p50: number;
  readonly p99: number;
};

/** `cpu` is the CPU seconds of the server in the same time. */
export function roundOf(seen: Seen, cpu: number | null, kind?: string): Round {
  const took = tookOf(seen, kind);
  return {
    answers: took.length,
    perSecond: took.length / seen.seconds,
    cpu: cpu === null ? null : (cpu / took.length) * 1e6,
    p50: percentile(took, 0.5),
    p99: percentile(took, 0.99),
  };
}

type Named = Pick<Row, "case" | "what"> & Partial<Pick<Row, "memory" | "start" | "ratios" | "aim">>;

export function rowOf(rounds: readonly Round[], named: Named): Row {
  const cpu = rounds.flatMap((round) => round.cpu ?? []);
  return {
    answers: rounds.reduce((sum, round) => sum + round.answers, 0),
    perSecond: spreadOf(rounds.map((round) => round.perSecond)),
    cpu: cpu.length < rounds.length ? null : spreadOf(cpu),
    p50: spreadOf(rounds.map((round) => round.p50)),
    p99: spreadOf(rounds.map((round) => round.p99)),
    memory: null,
    start: null,
    ratios: [],
    aim: "",
    ...named,
  };
}

type Figure = "perSecond" | "cpu" | "p50" | "p99";
const FIGURES: Readonly<Record<Figure, string>> = { perSecond: "requests/s", cpu: "CPU", p50: "p50", p99: "p99" };

/** Empty where a figure is unknown. */
export function ratioOf(figure: Figure, rounds: readonly Round[], to: string, reference: readonly Round[]): Ratio[] {
  const ratios = rounds.flatMap((round, index) => {
    const [one, other] = [round[figure], reference[index]?.[figure] ?? null];
    return one === null || other === null ? [] : [one / other];
  });
  return ratios.length === 0 ? [] : [{ of: FIGURES[figure], to, ratio: spreadOf(ratios) }];
}

const HEAD = [
  "case",
  "what",
  "requests/s",
  "CPU µs/request",
  "p50 ms",
  "p99 ms",
  "RSS",
  "start ms",
  "ratio (median, least to most)",
  "aim",
];

export function drawRows(rows: readonly Row[]): string {
  return drawTable(HEAD, (column) => column >= 2 && column <= 7, rows.map(cellsOf));
}

function cellsOf(row: Row): string[] {
  return [
    row.case,
    row.what,
    Math.round(row.perSecond.median).toLocaleString("en"),
    row.cpu === null ? "" : row.cpu.median.toFixed(1),
    row.p50.median.toFixed(2),
    row.p99.median.toFixed(2),
    row.memory === null ? "" : formatBytes(row.memory),
    row.start === null ? "" : String(Math.round(row.start)),
    row.ratios.map(ratioText).join("\n"),
    row.aim,
  ];
}

function ratioText({ of, to, ratio: { least, median, most } }: Ratio): string {
  const spread = least === most ? "" : ` (${least.toFixed(2)} to ${most.toFixed(2)})`;
  return `${of} ${median.toFixed(2)}${spread} of ${to}`;
}

/** What a case of the `serve` benchmark found: figures, and faults such as wrong answers. */
export type Found = { readonly rows: readonly Row[]; readonly faults: readonly string[] };
