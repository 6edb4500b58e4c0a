/** Lets other work of the process run during a long loop: the process may be a server that also builds. */
import { setImmediate } from "node:timers/promises";

/** Milliseconds after which other work gets a turn. */
const LONG = 10;

let last = performance.now();

/** To be called in each step of a long loop. Resolves at once, unless other work has waited for `LONG`. */
export async function breathe(): Promise<void> {
  if (performance.now() - last < LONG) return;
  await setImmediate();
  last = performance.now();
}
