/**
 * A circuit breaker: while the database is unavailable, queries are refused at once, and one probe after the other checks
 * whether it is back.
 */
import { DatabaseFault } from "../shared/database/errors.ts";

export type CircuitBreaker = {
  /**
   * Runs a query. Rejects with an `unavailable` DatabaseFault at once while the database is unavailable, and when it
   * becomes so meanwhile: then the controller is aborted too.
   */
  readonly run: <T>(controller: AbortController, run: () => Promise<T>) => Promise<T>;
  /** Probes the database now, unless it counts as unavailable: then a probe is due anyway. */
  readonly check: () => void;
  readonly isAway: () => boolean;
  readonly close: () => void;
};

type CircuitBreakerOptions = {
  /** Rejects when the database does not answer. */
  readonly probe: () => Promise<void>;
  /** Called when the database becomes unavailable, with the error of the probe. */
  readonly onAway: (error: unknown) => void;
  /** Called when the database is available again. */
  readonly onBack: () => void;
};

/** Milliseconds without any answer, while queries wait for one, after which the database is probed. */
const SILENCE = 500;
const BETWEEN_PROBES = 200;

export function openCircuitBreaker({ probe, onAway, onBack }: CircuitBreakerOptions): CircuitBreaker {
  /** One function for each query that waits for an answer; it gives the query up. */
  const pending = new Set<() => void>();
  let away = false;
  let closed = false;
  let probing = false;
  let answers = 0;
  let quietSince = 0;
  let timer: NodeJS.Timeout | undefined;

  /** Probes the database. Once it counts as unavailable, only a successful probe ends that. */
  async function probeNow(): Promise<void> {
    if (probing || closed) return;
    probing = true;
    const before = answers;
    const failure = await probe().then(
      () => null,
      (error: unknown) => ({ error }),
    );
    probing = false;
    if (failure === null) recover();
    // If queries were answered meanwhile, a failed probe proves nothing: the database may only refuse new connections.
    else if (away || answers === before) trip(failure.error);
    if (!away && !closed && pending.size > 0) runIn(SILENCE, probeIfSilent);
  }

  function recover(): void {
    if (!away) return;
    away = false;
    if (!closed) onBack();
  }

  function trip(error: unknown): void {
    if (!away) {
      away = true;
      // A server that stops closes its database itself.
      if (!closed) onAway(error);
      for (const giveUp of [...pending]) giveUp();
    }
    if (closed) return;
    runIn(BETWEEN_PROBES, () => void probeNow());
  }

  function runIn(milliseconds: number, next: () => void): void {
    clearTimeout(timer);
    timer = setTimeout(() => {
      timer = undefined;
      next();
    }, milliseconds);
  }

  function probeIfSilent(): void {
    if (pending.size === 0) return;
    const quiet = performance.now() - quietSince;
    if (quiet < SILENCE) runIn(SILENCE - quiet, probeIfSilent);
    else void probeNow();
  }

  function noteAnswer(): void {
    answers++;
    quietSince = performance.now();
  }

  function noteFailure(error: unknown): void {
    if (!(error instanceof DatabaseFault)) noteAnswer();
    else if (error.reason === "timeout") noteAnswer();
    else if (error.reason === "unavailable") void probeNow();
  }

  return {
    run: (controller, run) => {
      if (away) return Promise.reject(unavailable());
      if (pending.size === 0) quietSince = performance.now();
      return new Promise((resolve, reject) => {
        const giveUp = () => {
          pending.delete(giveUp);
          const fault = unavailable();
          reject(fault);
          controller.abort(fault);
        };
        pending.add(giveUp);
        if (timer === undefined && !probing) runIn(SILENCE, probeIfSilent);
        run()
          .finally(() => pending.delete(giveUp))
          .then(
            (result) => {
              noteAnswer();
              resolve(result);
            },
            (error: unknown) => {
              noteFailure(error);
              reject(error);
            },
          );
      });
    },
    check: () => {
      if (!away) void probeNow();
    },
    isAway: () => away,
    close: () => {
      closed = true;
      clearTimeout(timer);
    },
  };
}

function unavailable(): DatabaseFault {
  return new DatabaseFault("unavailable", "the database is unavailable");
}
