/** Follows the primary's log by repeated checks, so that replicas can be compared with it. */
import type { Database } from "../../shared/database/database.ts";
import { withDeadline } from "./deadline.ts";
import { type Instance, readInstance } from "./instance.ts";
import { addMark, isBeyond, lagOf, type Mark } from "./lag.ts";

export type PrimaryLog = {
  readonly check: () => Promise<void>;
  /** The state of the primary when it last answered; null when it never has. */
  readonly primary: () => Instance | null;
  /**
   * Lag of a server at this position, as in lag.ts. It does not grow while the primary is away, because nothing is
   * written that a replica could lack.
   */
  readonly lagOf: (position: bigint) => number | null;
  /** Whether a server that had this position at `time`, a performance.now(), has log that the primary lacks. */
  readonly isBeyond: (position: bigint, time: number) => boolean;
  /** Whether the primary did not answer the last check. */
  readonly isAway: () => boolean;
  /** Milliseconds for which the log has been followed. */
  readonly age: () => number;
};

/** `memory` is how many milliseconds of log positions are remembered. */
export function followLog(database: Database, memory: number): PrimaryLog {
  let primary: Instance | null = null;
  let marks: readonly Mark[] = [];
  let away = false;
  let since = 0;

  const now = () => (away ? (marks.at(-1)?.time ?? since) : performance.now());

  async function check(): Promise<void> {
    // Taken before the query, so that the position it returns includes everything written up to this time.
    const time = performance.now();
    try {
      primary = await withDeadline(database, readInstance);
      away = false;
    } catch {
      away = true;
      return;
    }
    if (marks.length === 0) since = time;
    marks = addMark(marks, { time, position: primary.position }, memory);
  }

  return {
    check,
    primary: () => primary,
    lagOf: (position) => lagOf(marks, position, now()),
    isBeyond: (position, time) => isBeyond(marks, position, time),
    isAway: () => away,
    age: () => now() - since,
  };
}
