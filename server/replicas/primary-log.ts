/** The primary's log, looked at again and again: what its replicas are compared with. */
import type { Database } from "../../shared/database/database.ts";
import { inTime } from "./deadline.ts";
import { type Instance, readInstance } from "./instance.ts";
import { addMark, lagOf, type Mark } from "./lag.ts";

export type PrimaryLog = {
  readonly look: () => Promise<void>;
  /** The primary as it was when it last answered; null when it never has. */
  readonly primary: () => Instance | null;
  /** As `lagOf`, for a server that has come so far. While the primary is away nothing is written that one could lack. */
  readonly lagOf: (position: bigint) => number | null;
  /** Whether it did not answer when it was last looked at. */
  readonly isAway: () => boolean;
  /** For how many milliseconds it has been followed. */
  readonly age: () => number;
};

/** Remembers so many milliseconds of it. */
export function followLog(database: Database, memory: number): PrimaryLog {
  let primary: Instance | null = null;
  let marks: readonly Mark[] = [];
  let away = false;
  let since = 0;

  const now = () => (away ? (marks.at(-1)?.time ?? since) : performance.now());

  async function look(): Promise<void> {
    // What is written while it answers comes later than this.
    const time = performance.now();
    try {
      primary = await inTime(database, readInstance);
      away = false;
    } catch {
      away = true;
      return;
    }
    if (marks.length === 0) since = time;
    marks = addMark(marks, { time, position: primary.position }, memory);
  }

  return {
    look,
    primary: () => primary,
    lagOf: (position) => lagOf(marks, position, now()),
    isAway: () => away,
    age: () => now() - since,
  };
}
