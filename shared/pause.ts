/** Waits for a time, or until it is told to stop. */
import { setTimeout as sleep } from "node:timers/promises";

/** Never throws. */
export async function pause(milliseconds: number, stop: AbortSignal): Promise<void> {
  await sleep(milliseconds, null, { signal: stop }).catch(() => {});
}
