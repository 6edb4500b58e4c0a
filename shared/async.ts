/** Waits for a time, or until it is told to stop. */
import { setTimeout as sleep } from "node:timers/promises";

/** Never throws. */
export async function pause(milliseconds: number, stop: AbortSignal): Promise<void> {
  await sleep(milliseconds, null, { signal: stop }).catch(() => {});
}

// A signal for one waiter that is remembered: when it is given while nobody waits, the next wait ends at once.

export type Wakeup = {
  readonly signal: () => void;
  /** Resolves when the signal was given since the last `reset`. */
  readonly wait: () => Promise<void>;
  /** Resets the signal, and returns whether it had been given. */
  readonly reset: () => boolean;
};

export function openWakeup(): Wakeup {
  let isSet = false;
  let wake = () => {};
  return {
    signal: () => {
      isSet = true;
      wake();
    },
    wait: () =>
      new Promise((resolve) => {
        wake = resolve;
        if (isSet) resolve();
      }),
    reset: () => {
      const wasSet = isSet;
      isSet = false;
      return wasSet;
    },
  };
}

// Repeats a task for as long as the server runs, one run at a time.

/**
 * Calls `run` with the number of the run, from 0. While a run lasts longer than the interval, the next ones are
 * skipped. Returns a function that stops the repetition and resolves when the current run has ended.
 */
export function repeat(
  milliseconds: number,
  run: (turn: number) => Promise<void>,
  onError: (error: unknown) => void,
): () => Promise<void> {
  let turn = 0;
  let running: Promise<void> | null = null;
  const timer = setInterval(() => {
    running ??= run(turn++)
      .catch(onError)
      .finally(() => {
        running = null;
      });
  }, milliseconds);
  return async () => {
    clearInterval(timer);
    await running;
  };
}

// Runs recurring tasks that may fail: a failure stops no other task, and is reported once until the task succeeds.

/** `what` names the task; failures are reported once for each name. */
type Attempt = (what: string, effect: () => Promise<unknown>) => Promise<void>;

export function openAttempts(onError: (error: unknown) => void): Attempt {
  const failing = new Set<string>();

  return async (what, effect) => {
    try {
      await effect();
      failing.delete(what);
    } catch (error) {
      if (!failing.has(what)) onError(error);
      failing.add(what);
    }
  };
}

// Runs a job for each of many items, a limited number at a time.

/** After a failure, no further job begins; the running ones are awaited, and the first failure is thrown. */
export async function runConcurrently<T>(
  all: Iterable<T>,
  concurrency: number,
  job: (one: T) => Promise<void>,
): Promise<void> {
  const rest = all[Symbol.iterator]();
  const failures: unknown[] = [];
  const work = async () => {
    for (let next = rest.next(); !next.done && failures.length === 0; next = rest.next()) {
      await job(next.value).catch((error: unknown) => failures.push(error));
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  if (failures.length > 0) throw failures[0];
}

/** Lets no more than so many jobs run at the same time, in the order in which they are given. */
export function openLimit(most: number): <T>(job: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let running = 0;

  return async (job) => {
    if (running >= most) await new Promise<void>((resolve) => waiting.push(resolve));
    else running += 1;
    try {
      return await job();
    } finally {
      const next = waiting.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  };
}

// Shares work among the callers that ask for it while it runs.

export function shareRunning<T>(work: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | null = null;
  return () => {
    running ??= work().finally(() => {
      running = null;
    });
    return running;
  };
}
