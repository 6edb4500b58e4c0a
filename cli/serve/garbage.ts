/** How V8 collects the garbage of a process that answers. */
import { setFlagsFromString } from "node:v8";

/**
 * What an answer leaves behind is little and nearly all of it dead: to hand it out to the helper threads of V8 costs more than they
 * take over, and they take processor time from the database and from other workers. What has lived long is cleared with their help
 * as ever. A V8 that no longer knows the flag would say so on standard error, and nothing else would change.
 */
export function clearAlone(): void {
  setFlagsFromString("--no-parallel-scavenge");
}
