/** Lets the rest of the process have its turn in the middle of long work: it may be a server that builds. */
import { setImmediate } from "node:timers/promises";

/** Milliseconds for which the others wait. */
const LONG = 10;

let last = performance.now();

/** For the steps of a loop: resolves at once, unless others have waited for long. */
export async function breathe(): Promise<void> {
  if (performance.now() - last < LONG) return;
  await setImmediate();
  last = performance.now();
}
