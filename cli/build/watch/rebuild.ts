/** Builds whenever content has changed: what comes in a burst is built once, and what fails is tried again. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Database } from "../../../shared/database/database.ts";
import { type Bell, openBell } from "./bell.ts";

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

/** Returns when it is stopped. Throws when nothing more will be heard, or when the database lets nobody listen. */
export async function rebuildOnChange({ listen, build, onFailure, stop }: Rebuilding): Promise<void> {
  const loss = new AbortController();
  const end = AbortSignal.any([stop, loss.signal]);
  const bell = openBell();
  end.addEventListener("abort", bell.ring);
  const stopListening = await listen({ heard: bell.ring, lost: (fault) => loss.abort(fault) });
  try {
    // What was there before anyone listened is for the first build.
    bell.ring();
    for (let failures = 0; await waitForBurst(bell, end); ) {
      try {
        await build();
        failures = 0;
      } catch (error) {
        onFailure(error);
        bell.ring();
        await pause(Math.min(FIRST_WAIT * 2 ** failures++, LONGEST_WAIT), end);
      }
    }
  } finally {
    await stopListening();
  }
  loss.signal.throwIfAborted();
}

/** True when there is something to build, false at the end. What is heard from then on is for the next build. */
async function waitForBurst(bell: Bell, end: AbortSignal): Promise<boolean> {
  await bell.rung();
  for (let whiles = 0; bell.hush() && whiles < WHILES; whiles++) await pause(WHILE, end);
  return !end.aborted;
}

async function pause(milliseconds: number, end: AbortSignal): Promise<void> {
  await sleep(milliseconds, null, { signal: end }).catch(() => {});
}
