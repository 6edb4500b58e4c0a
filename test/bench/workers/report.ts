/** The results of the `work` benchmark as tables, and as JSON. */
import { cpus } from "node:os";
import { formatBytes } from "../../../shared/text.ts";
import { spreadOf } from "../spread.ts";
import { drawTable } from "../table.ts";
import { percentile } from "../traffic.ts";
import type { Work } from "../work.ts";
import type { WorkersOptions } from "../workers.ts";
import type { QueueCost, Taken } from "./queue.ts";
import type { Phase, SideRun } from "./side.ts";

/** `workers` is 0 for `build && deploy`. */
export type Side = { readonly workers: number; readonly runs: SideRun[] };
export type Found = { readonly sides: readonly Side[]; readonly queue: QueueCost };

const PHASES = ["fill", "edits", "wave"] as const;
type PhaseName = (typeof PHASES)[number];
const TITLES: Readonly<Record<PhaseName, string>> = {
  fill: "first fill",
  wave: "one edit per app",
  edits: "edits one by one",
};

export function asText(work: Work<WorkersOptions>, { sides, queue }: Found): string {
  const { apps, entries, large, largeEntries, rounds, postgres, processors } = context(work);
  const many = `${apps.toLocaleString("en")} apps of ${entries} entries, ${large} of ${largeEntries.toLocaleString("en")}`;
  const lines = [
    `${many}, ${rounds} rounds, PostgreSQL ${postgres}, ${processors}`,
    drawPhases(sides),
    drawLatencies(sides),
    describeQueue(queue),
    describeFaults(sides),
  ];
  return `${lines.join("\n")}\n`;
}

const HEAD = ["what", "by", "publications", "seconds", "a second", "× build && deploy", "CPU ms each"];
const MORE = ["store's CPU ms each", "requests each", "connections", "RSS of a worker"];

function drawPhases(sides: readonly Side[]): string {
  const rows = PHASES.flatMap((name) => sides.map((side) => phaseCells(name, side, sides)));
  return drawTable([...HEAD, ...MORE], (column) => column >= 2, rows);
}

function phaseCells(name: PhaseName, side: Side, sides: readonly Side[]): string[] {
  const median = (read: (phase: Phase) => number | null) => {
    const values = side.runs.map((run) => read(run[name]));
    return values.includes(null) ? null : spreadOf(values as number[]).median;
  };
  const each = (read: (phase: Phase) => number | null) =>
    median((phase) => (read(phase) === null ? null : (read(phase) as number) / phase.publications));
  const ratio = ratioOf(name, side, sides[0]);
  const speed = median(({ publications, seconds }) => publications / seconds);
  const memory = median((phase) => phase.memory);
  return [
    ...[
      TITLES[name],
      nameSide(side),
      digits(
        median((phase) => phase.publications),
        0,
      ),
    ],
    ...[
      digits(
        median((phase) => phase.seconds),
        1,
      ),
      digits(speed, 1),
      digits(ratio, 2),
    ],
    ...[
      digits(
        each(({ cpu }) => cpu * 1_000),
        1,
      ),
      digits(
        each(({ storeCpu }) => scale(storeCpu)),
        1,
      ),
    ],
    ...[
      digits(
        each(({ requests }) => requests),
        1,
      ),
      digits(
        median(({ connections }) => connections),
        0,
      ),
    ],
    memory === null ? "" : formatBytes(memory),
  ];
}

/** How many times as fast as `build && deploy`, compared round by round. */
function ratioOf(name: PhaseName, { runs }: Side, reference: Side | undefined): number | null {
  if (reference?.workers !== 0 || reference.runs === runs) return null;
  const speed = ({ publications, seconds }: Phase) => publications / seconds;
  return spreadOf(runs.map((run, round) => speed(run[name]) / speed((reference.runs[round] as SideRun)[name]))).median;
}

function drawLatencies(sides: readonly Side[]): string {
  const rows = sides.map((side) => {
    const all = side.runs.flatMap(({ latencies }) => latencies);
    const memories = (side.runs[0]?.memories ?? []).map((bytes) => formatBytes(bytes)).join(", ");
    return [
      nameSide(side),
      `${all.length}`,
      digits(percentile(all, 0.5), 0),
      digits(percentile(all, 0.99), 0),
      memories,
    ];
  });
  const head = [
    "by",
    "edits",
    "visible after ms, p50",
    "p99",
    "RSS: at tenths of the fill, after the edits and the wave",
  ];
  return drawTable(head, (column) => column >= 1 && column <= 3, rows);
}

function nameSide({ workers }: Side): string {
  return workers === 0 ? "build && deploy" : `${workers} worker${workers === 1 ? "" : "s"}`;
}

function describeQueue(cost: QueueCost): string {
  const { queue, full, incremental } = describeCost(cost);
  const of = (what: string, { ms, cpuMs, share, cpuShare }: Cost) =>
    `${what} ${ms.toFixed(2)} ms (${cpuMs.toFixed(2)} of CPU): the queue is ${percent(share)} of it (${percent(cpuShare)})`;
  const head = `the queue alone, each job: ${queue.ms.toFixed(2)} ms (${queue.cpuMs.toFixed(2)} of CPU)`;
  return `${head}; without a queue, ${of("a first publication:", full)}; ${of("an update:", incremental)}`;
}

type Cost = { readonly ms: number; readonly cpuMs: number; readonly share: number; readonly cpuShare: number };

/** All by milliseconds of one job or publication, with as many at a time. */
function describeCost({ queue, full, incremental }: QueueCost) {
  const each = ({ count, seconds, cpu }: Taken) => ({ ms: (seconds * 1_000) / count, cpuMs: (cpu * 1_000) / count });
  const jobs = queue.map(each);
  const own = { ms: spreadOf(jobs.map(({ ms }) => ms)).median, cpuMs: spreadOf(jobs.map(({ cpuMs }) => cpuMs)).median };
  const compare = (taken: Taken): Cost => {
    const { ms, cpuMs } = each(taken);
    return { ms, cpuMs, share: own.ms / ms, cpuShare: own.cpuMs / cpuMs };
  };
  return { queue: own, full: compare(full), incremental: compare(incremental) };
}

function describeFaults(sides: readonly Side[]): string {
  const found = sides.flatMap((side) =>
    side.runs.flatMap(({ faults }) => (faults ?? []).map((path) => `${nameSide(side)}: ${path}`)),
  );
  if (sides.some(({ runs }) => runs.some(({ faults }) => faults === null))) return "exact: not compared";
  return `exact: ${found.length === 0 ? "yes" : `no: ${found.length} not, ${found.slice(0, 5).join(", ")}`} (each target holds what a full build makes)`;
}

function scale(seconds: number | null): number | null {
  return seconds === null ? null : seconds * 1_000;
}

function digits(value: number | null, count: number): string {
  if (value === null) return "";
  return value.toLocaleString("en", { minimumFractionDigits: count, maximumFractionDigits: count });
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}

export function asJson(work: Work<WorkersOptions>, { sides, queue }: Found) {
  return { ...context(work), sides, queue: { ...queue, each: describeCost(queue) } };
}

function context({ options, place }: Work<WorkersOptions>) {
  const { apps, entries, large, largeEntries, appsPerProcess, rounds } = options;
  const [first] = cpus();
  return {
    ...{ apps, entries, large, largeEntries, appsPerProcess, rounds },
    postgres: place.postgres(),
    processors: `${cpus().length} × ${first?.model.trim() ?? "unknown"}`,
  };
}
