/** Shares work in flight: who asks for the same meanwhile gets the same result, and who goes away ends it only when alone. */
import { isDeepStrictEqual } from "node:util";

/**
 * Two share when both key and subject are the same; a subject is compared by content. `work` is told to end through its
 * controller when the last who wanted it has gone. `instead` gives what is answered where new work must not begin, and null
 * where it may. Throws the reason of the signal.
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
  /** The result of what is in flight; null where nothing is. */
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
    const flying = flights.get(key);
    return flying !== undefined && isJoinable(flying, subject) ? board(flying, signal) : null;
  };

  return {
    share: async (key, subject, signal, work, instead = nothing) =>
      join(key, subject, signal) ?? instead() ?? board(start(key, subject, work), signal),
    join,
  };
}

/** One that is being given up is nobody's to join. */
function isJoinable(flight: Flight<unknown>, subject: unknown): boolean {
  return !flight.controller.signal.aborted && isDeepStrictEqual(flight.subject, subject);
}

function nothing(): null {
  return null;
}

function board<T>(flight: Flight<T>, signal: AbortSignal): Promise<T> {
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
