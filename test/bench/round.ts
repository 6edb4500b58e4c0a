/** One round of measuring servers: traffic runs, and everything is measured for some seconds of it. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Served } from "./served.ts";
import type { Seen, Traffic } from "./traffic.ts";

export type Window = {
  readonly seen: Seen;
  /** CPU seconds of the server; null where they cannot be read. */
  readonly cpu: number | null;
};

/** Milliseconds before measuring, in which connections are opened and queues fill. */
const LEAD = 150;
const SLICE = 0.5;

/**
 * Measures every side for `seconds`, in short slices in turn: other work of the machine changes from one second to the
 * next, and so affects all sides alike.
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
