/** Keeps listening to PostgreSQL: a connection that is lost is made anew, and what may have been missed is told. */
import { setTimeout as sleep } from "node:timers/promises";
import { DatabaseFault } from "./fault.ts";

/** A connection that listens. */
export type Line = {
  /** Resolves when the connection has ended, however it did. */
  readonly ended: Promise<unknown>;
  readonly close: () => void;
};

type Connect = () => Promise<Line>;

const FIRST_WAIT = 100;
const LONGEST_WAIT = 5_000;

/**
 * Gives what ends it. Throws when the database refuses to let anyone listen; one that is away is waited for. `heard` is
 * called when a connection is lost and when the next one listens: before that, something may have been announced to
 * nobody.
 */
export async function keepListening(connect: Connect, heard: () => void): Promise<() => Promise<void>> {
  const stop = new AbortController();
  let line = await connect().catch((error: unknown) => {
    if (!(error instanceof DatabaseFault)) throw error;
    return null;
  });

  async function stay(): Promise<void> {
    for (;;) {
      await line?.ended;
      if (stop.signal.aborted) return;
      heard();
      line = await reconnect(connect, stop.signal);
      if (stop.signal.aborted) return line?.close();
      heard();
    }
  }

  const stayed = stay();
  return async () => {
    stop.abort();
    line?.close();
    await stayed;
  };
}

/** Null when it was stopped before the database was back. */
async function reconnect(connect: Connect, signal: AbortSignal): Promise<Line | null> {
  for (let wait = FIRST_WAIT; !signal.aborted; wait = Math.min(2 * wait, LONGEST_WAIT)) {
    await sleep(wait, null, { signal }).catch(() => {});
    if (signal.aborted) return null;
    const line = await connect().catch(() => null);
    if (line !== null) return line;
  }
  return null;
}
