/** Runs a job for each of many items, a limited number at a time. */

/** After a failure, no further job begins; the running ones are awaited, and the first failure is thrown. */
export async function runConcurrently<T>(
  all: Iterable<T>,
  concurrency: number,
  job: (one: T) => Promise<void>,
): Promise<void> {
  const rest = all[Symbol.iterator]();
  const failures: unknown[] = [];
  const work = async () => {
    for (let next = rest.next(); !next.done && failures.length === 0; next = rest.next()) {
      await job(next.value).catch((error: unknown) => failures.push(error));
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  if (failures.length > 0) throw failures[0];
}
