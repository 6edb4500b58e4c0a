/** Configures V8's garbage collection for a process that answers requests: nearly all objects die with their answer. */
import { setFlagsFromString } from "node:v8";

/** A V8 that no longer knows one of the flags would only print a message to standard error. */
export function configureGarbageCollection(): void {
  // Distributing the few young objects that are alive costs more than helper threads save, and takes processor time
  // from the database and other workers. Old objects are still collected with helper threads.
  setFlagsFromString("--no-parallel-scavenge");
  // Where many objects of one origin were alive at a collection, V8 would create all later ones among the old objects,
  // and whatever they refer to, such as the rows of a result, would have to be copied there too.
  setFlagsFromString("--no-allocation-site-pretenuring");
}
