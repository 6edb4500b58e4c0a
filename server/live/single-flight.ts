/** Shares work in flight: equal requests get one result, and work is aborted only when its last caller has gone. */

/**
 * Callers share work when their keys are equal and their subjects are the same. The controller that `work` gets aborts
 * when the last caller has gone. `instead` returns the result to use when no new work may begin, and null when it may.
 * Throws the reason of the signal when that aborts.
 */
export type Share<T> = (
  key: string,
  subject: unknown,
  signal: AbortSignal,
  work: (controller: AbortController) => Promise<T>,
  instead?: () => T | null,
) => Promise<T>;

export type SingleFlight<T> = {
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
