/** Configures V8's garbage collection for a process that answers requests. */
import { setFlagsFromString } from "node:v8";

/**
 * Makes V8 collect young objects without helper threads. An answer leaves few objects, nearly all dead: distributing
 * them costs more than the threads save, and takes processor time from the database and other workers. Old objects are
 * still collected with helper threads. A V8 that no longer knows the flag would only print a message to standard error.
 */
export function disableParallelScavenge(): void {
  setFlagsFromString("--no-parallel-scavenge");
}
