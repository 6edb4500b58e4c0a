/** Keeps listening for notifications: reconnects after a loss, and reports that some may have been missed. */
import { pause } from "../async.ts";
import { DatabaseFault } from "./fault.ts";

/** A connection that listens. */
export type Listening = {
  /** Resolves when the connection has ended, for whatever reason. */
  readonly ended: Promise<unknown>;
  readonly close: () => void;
};

type Connect = () => Promise<Listening>;

/** Milliseconds before the first attempt to reconnect, and the limit to which later waits double. */
const FIRST_WAIT = 100;
const LONGEST_WAIT = 5_000;

/**
 * Keeps a listening connection open and returns a function that ends it. Throws when the first `connect` fails with
 * anything but a DatabaseFault; if the database is unavailable, retries in the background. Calls `onChange` when a
 * connection is lost and when the next one listens, because notifications in between were missed.
 */
export async function keepListening(connect: Connect, onChange: () => void): Promise<() => Promise<void>> {
  const stop = new AbortController();
  let listening = await connect().catch((error: unknown) => {
    if (!(error instanceof DatabaseFault)) throw error;
    return null;
  });

  async function keepOpen(): Promise<void> {
    for (;;) {
      await listening?.ended;
      if (stop.signal.aborted) return;
      onChange();
      listening = await reconnect(connect, stop.signal);
      if (stop.signal.aborted) return listening?.close();
      onChange();
    }
  }

  const kept = keepOpen();
  return async () => {
    stop.abort();
    listening?.close();
    await kept;
  };
}

/** Retries with backoff until the database is back. Null when `signal` aborts before that. */
async function reconnect(connect: Connect, signal: AbortSignal): Promise<Listening | null> {
  for (let wait = FIRST_WAIT; !signal.aborted; wait = Math.min(2 * wait, LONGEST_WAIT)) {
    await pause(wait, signal);
    if (signal.aborted) return null;
    const listening = await connect().catch(() => null);
    if (listening !== null) return listening;
  }
  return null;
}
