/**
 * Shares work that nobody is given from before he asked: who asks while it runs gets the next, for the one that runs may have
 * seen what was true before. One runs at a time for the same, unless it takes long.
 */
import { openSingleFlight, type Share } from "./single-flight.ts";

/** Work for the same. */
type Line = {
  /** The one that can be joined: it has not begun. No other ever has its number. */
  next: number;
  /** Resolves when the last that has begun is over. */
  running: Promise<unknown>;
  /** Those that are not over. */
  open: number;
};

export function openFreshFlight<T>(): Share<T> {
  const flights = openSingleFlight<T>();
  const lines = new Map<string, Line>();
  let last = 0;

  async function workInTurn(key: string, number: number, work: () => Promise<T>): Promise<T> {
    const line = lines.get(key) ?? { next: number, running: Promise.resolve(), open: 0 };
    lines.set(key, line);
    line.open++;
    await orLate(line.running);
    line.next = ++last;
    const result = work();
    line.running = result.catch(() => {});
    return result.finally(() => {
      line.open--;
      if (line.open === 0) lines.delete(key);
    });
  }

  return (key, subject, signal, work, instead) => {
    const number = lines.get(key)?.next ?? ++last;
    const workNext = (controller: AbortController) => workInTurn(key, number, () => work(controller));
    return flights.share(`${key} ${number}`, subject, signal, workNext, instead);
  };
}

/** Milliseconds after which the next begins beside one that runs still: its connection may be dead, and others wait. */
const LATE = 500;

async function orLate(running: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, LATE);
  });
  await Promise.race([running, late]).finally(() => clearTimeout(timer));
}
