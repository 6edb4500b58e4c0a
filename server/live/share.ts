/** Shares work in flight: equal requests get one result, and work is aborted only when its last caller has gone. */

/**
 * Callers share work when their keys are equal and their subjects are the same. The controller that `work` gets aborts
 * when the last caller has gone. `instead` returns the result to use when no new work may begin, and null when it may.
 * Throws the reason of the signal when that aborts.
 */
type Share<T> = (
  key: string,
  subject: unknown,
  signal: AbortSignal,
  work: (controller: AbortController) => Promise<T>,
  instead?: () => T | null,
) => Promise<T>;

type SingleFlight<T> = {
  readonly share: Share<T>;
  /** The result of the work in flight; null when there is none. */
  readonly join: (key: string, subject: unknown, signal: AbortSignal) => Promise<T> | null;
};

type Flight<T> = {
  readonly subject: unknown;
  readonly controller: AbortController;
  readonly result: Promise<T>;
  sharers: number;
};

export function openSingleFlight<T>(): SingleFlight<T> {
  const flights = new Map<string, Flight<T>>();

  function start(key: string, subject: unknown, work: (controller: AbortController) => Promise<T>): Flight<T> {
    const controller = new AbortController();
    const flight: Flight<T> = { subject, controller, result: work(controller), sharers: 0 };
    const forget = () => {
      if (flights.get(key) === flight) flights.delete(key);
    };
    flights.set(key, flight);
    flight.result.then(forget, forget);
    return flight;
  }

  const join: SingleFlight<T>["join"] = (key, subject, signal) => {
    signal.throwIfAborted();
    const flight = flights.get(key);
    return flight !== undefined && isJoinable(flight, subject) ? joinFlight(flight, signal) : null;
  };

  return {
    share: async (key, subject, signal, work, instead = nothing) =>
      join(key, subject, signal) ?? instead() ?? joinFlight(start(key, subject, work), signal),
    join,
  };
}

/** Work that is being aborted cannot be joined. */
function isJoinable(flight: Flight<unknown>, subject: unknown): boolean {
  return !flight.controller.signal.aborted && flight.subject === subject;
}

function nothing(): null {
  return null;
}

function joinFlight<T>(flight: Flight<T>, signal: AbortSignal): Promise<T> {
  flight.sharers++;
  return new Promise((resolve, reject) => {
    const leave = () => {
      flight.sharers--;
      if (flight.sharers === 0) flight.controller.abort(signal.reason);
      reject(signal.reason);
    };
    const arrive = () => signal.removeEventListener("abort", leave);
    signal.addEventListener("abort", leave, { once: true });
    flight.result.finally(arrive).then(resolve, reject);
  });
}

// Shares work among callers, but never gives a caller the result of work that began before it asked, which may be
// outdated: a caller that asks during a run gets the result of the next run. Each key has one run at a time, unless a
// run takes long.

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

// Decides which requests may share work by the time that they have left: one that has waited must not pass its short
// remaining time on to a new one.

/** Requests share such work only if their remaining times are the same in tenths of the limit. Milliseconds. */
export function tenthsLeft(left: number, limit: number): number {
  return Math.ceil((10 * left) / limit);
}
