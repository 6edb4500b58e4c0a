/**
 * Shares work among callers, but never gives a caller the result of work that began before it asked, which may be
 * outdated: a caller that asks during a run gets the result of the next run. Each key has one run at a time, unless a
 * run takes long.
 */
import { openSingleFlight, type Share } from "./single-flight.ts";

/** The runs of one key. */
type Runs = {
  /** Number of the run that can still be joined because it has not begun. Numbers are never reused. */
  next: number;
  /** Resolves when the run that began last has ended, even if it failed. */
  running: Promise<unknown>;
  /** Number of runs that have not ended, including those that have not begun. */
  open: number;
};

export function openFreshFlight<T>(): Share<T> {
  const flights = openSingleFlight<T>();
  const runsByKey = new Map<string, Runs>();
  let last = 0;

  async function workInTurn(key: string, number: number, work: () => Promise<T>): Promise<T> {
    const runs = runsByKey.get(key) ?? { next: number, running: Promise.resolve(), open: 0 };
    runsByKey.set(key, runs);
    runs.open++;
    await waitForRun(runs.running);
    runs.next = ++last;
    const result = work();
    runs.running = result.catch(() => {});
    return result.finally(() => {
      runs.open--;
      if (runs.open === 0) runsByKey.delete(key);
    });
  }

  return (key, subject, signal, work, instead) => {
    const number = runsByKey.get(key)?.next ?? ++last;
    const workNext = (controller: AbortController) => workInTurn(key, number, () => work(controller));
    return flights.share(`${key} ${number}`, subject, signal, workNext, instead);
  };
}

/** Milliseconds after which the next run begins although the last one has not ended: its connection may be dead. */
const LATE_AFTER = 500;

async function waitForRun(running: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, LATE_AFTER);
  });
  await Promise.race([running, late]).finally(() => clearTimeout(timer));
}
