/** Builds whenever content has changed: a burst of changes causes one build, and a failed build is retried. */
import type { Database } from "../../shared/database/database.ts";
import { type Bell, openBell } from "./bell.ts";
import { pause } from "./pause.ts";

export type Rebuilding = {
  readonly listen: Database["listen"];
  readonly build: () => Promise<void>;
  readonly onFailure: (error: unknown) => void;
  /** Ends the rebuilding, after the build that is running. */
  readonly stop: AbortSignal;
};

/** A burst is over after WHILE milliseconds without a change. One that does not end is built after WHILES of them. */
const WHILE = 50;
const WHILES = 10;
const FIRST_WAIT = 200;
const LONGEST_WAIT = 5_000;

/** Resolves when it is stopped. Throws when the database refuses LISTEN, as a standby does. */
export async function rebuildOnChange({ listen, build, onFailure, stop }: Rebuilding): Promise<void> {
  const bell = openBell();
  stop.addEventListener("abort", bell.ring);
  const stopListening = await listen(bell.ring);
  try {
    // The first build covers all changes from before the listening began.
    bell.ring();
    for (let failures = 0; await waitForBurst(bell, stop); ) {
      try {
        await build();
        failures = 0;
      } catch (error) {
        onFailure(error);
        bell.ring();
        await pause(Math.min(FIRST_WAIT * 2 ** failures++, LONGEST_WAIT), stop);
      }
    }
  } finally {
    await stopListening();
  }
}

/**
 * Resolves with true when there is something to build, with false when stopped. Later changes are for the next build.
 */
async function waitForBurst(bell: Bell, stop: AbortSignal): Promise<boolean> {
  await bell.rung();
  for (let whiles = 0; bell.hush() && whiles < WHILES; whiles++) await pause(WHILE, stop);
  return !stop.aborted;
}
