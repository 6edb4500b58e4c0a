/** One round of a bench of serving: traffic is on, and for so many seconds of it everything is measured. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Served } from "./served.ts";
import type { Seen, Traffic } from "./traffic.ts";

export type Window = {
  readonly seen: Seen;
  /** Seconds that the server worked; null where nobody can tell. */
  readonly cpu: number | null;
};

/** Connections are made and queues are filled before. */
const LEAD = 150;
const SLICE = 0.5;

/**
 * Every side is watched for so many seconds, in short slices that all take in turn: what else the machine does changes
 * from one second to the next, and so meets all of them alike.
 */
export async function watchInTurn<Side>(
  sides: readonly Side[],
  seconds: number,
  watch: (side: Side, seconds: number) => Promise<Window>,
): Promise<ReadonlyMap<Side, Window>> {
  const slices = new Map(sides.map((side) => [side, [] as Window[]]));
  for (let spent = 0; spent < seconds; spent += SLICE)
    for (const side of sides) slices.get(side)?.push(await watch(side, SLICE));
  return new Map([...slices].map(([side, windows]) => [side, join(windows)]));
}

function join(windows: readonly Window[]): Window {
  const took = new Map<string, readonly number[]>();
  for (const { seen } of windows)
    for (const [kind, times] of seen.took) took.set(kind, [...(took.get(kind) ?? []), ...times]);
  return {
    seen: {
      took,
      seconds: sum(windows, ({ seen }) => seen.seconds),
      faults: windows.flatMap(({ seen }) => seen.faults),
    },
    cpu: windows.some(({ cpu }) => cpu === null) ? null : sum(windows, ({ cpu }) => cpu ?? 0),
  };
}

function sum(windows: readonly Window[], of: (window: Window) => number): number {
  return windows.reduce((total, window) => total + of(window), 0);
}

export async function watchWindow(served: Served, seconds: number, traffic: Traffic): Promise<Window> {
  await sleep(LEAD);
  const before = served.cpu();
  traffic.begin();
  await sleep(seconds * 1_000);
  const seen = traffic.end();
  const after = served.cpu();
  return { seen, cpu: before === null || after === null ? null : after - before };
}
