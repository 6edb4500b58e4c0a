/** Lets other work of the process run during a long loop: the process may be a server that also builds. */
import { setImmediate } from "node:timers/promises";

/** Milliseconds after which other work gets a turn. */
const MAX_TURN = 10;

let turnStart = performance.now();

/** To be called in each step of a long loop. Resolves at once, unless other work has waited for `MAX_TURN`. */
export async function yieldToEventLoop(): Promise<void> {
  if (performance.now() - turnStart < MAX_TURN) return;
  await setImmediate();
  turnStart = performance.now();
}
