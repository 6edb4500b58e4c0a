/** Builds whenever content has changed: what comes in a burst is built once, and what fails is tried again. */
import type { Database } from "../../shared/database/database.ts";
import { type Bell, openBell } from "./bell.ts";
import { pause } from "./pause.ts";

export type Rebuilding = {
  readonly listen: Database["listen"];
  readonly build: () => Promise<void>;
  readonly onFailure: (error: unknown) => void;
  /** Ends it, after the build that runs. */
  readonly stop: AbortSignal;
};

/** A burst is over after a while in which nothing was heard. One that does not end is built after so many whiles. */
const WHILE = 50;
const WHILES = 10;
const FIRST_WAIT = 200;
const LONGEST_WAIT = 5_000;

/** Returns when it is stopped. Throws when the database lets nobody listen. */
export async function rebuildOnChange({ listen, build, onFailure, stop }: Rebuilding): Promise<void> {
  const bell = openBell();
  stop.addEventListener("abort", bell.ring);
  const stopListening = await listen(bell.ring);
  try {
    // What was there before anyone listened is for the first build.
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

/** True when there is something to build, false at the end. What is heard from then on is for the next build. */
async function waitForBurst(bell: Bell, stop: AbortSignal): Promise<boolean> {
  await bell.rung();
  for (let whiles = 0; bell.hush() && whiles < WHILES; whiles++) await pause(WHILE, stop);
  return !stop.aborted;
}
