/** Builds whenever content has changed: a burst of changes causes one build, and a failed build is retried. */
import type { Database } from "../../shared/database/database.ts";
import { pause } from "../../shared/pause.ts";
import { openWakeup, type Wakeup } from "./wakeup.ts";

export type RebuildOptions = {
  readonly listen: Database["listen"];
  readonly build: () => Promise<void>;
  readonly onFailure: (error: unknown) => void;
  /** Ends the rebuilding, after the build that is running. */
  readonly stop: AbortSignal;
};

/**
 * A burst is over after BURST_PAUSE milliseconds without a change. One that does not end is built after
 * MAX_BURST_PAUSES of them.
 */
const BURST_PAUSE = 50;
const MAX_BURST_PAUSES = 10;
const FIRST_WAIT = 200;
const LONGEST_WAIT = 5_000;

/** Resolves when it is stopped. Throws when the database refuses LISTEN, as a standby does. */
export async function rebuildOnChange({ listen, build, onFailure, stop }: RebuildOptions): Promise<void> {
  const wakeup = openWakeup();
  const stopListening = await listen(wakeup.signal);
  stop.addEventListener("abort", wakeup.signal);
  try {
    // The first build covers all changes from before the listening began.
    wakeup.signal();
    for (let failures = 0; await waitForBurst(wakeup, stop); ) {
      try {
        await build();
        failures = 0;
      } catch (error) {
        onFailure(error);
        wakeup.signal();
        await pause(Math.min(FIRST_WAIT * 2 ** failures++, LONGEST_WAIT), stop);
      }
    }
  } finally {
    stop.removeEventListener("abort", wakeup.signal);
    await stopListening();
  }
}

/**
 * Resolves with true when there is something to build, with false when stopped. Later changes are for the next build.
 */
async function waitForBurst(wakeup: Wakeup, stop: AbortSignal): Promise<boolean> {
  await wakeup.wait();
  for (let pauses = 0; wakeup.reset() && pauses < MAX_BURST_PAUSES; pauses++) await pause(BURST_PAUSE, stop);
  return !stop.aborted;
}
