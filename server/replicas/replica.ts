/** One read replica: its own database connections, and whether it may answer in place of the primary. */
import type { Database } from "../../shared/database/database.ts";
import { openDatabase } from "../../shared/database/open.ts";
import { schemaState } from "../../shared/schema/migrate.ts";
import { shareRunning } from "../load/share-running.ts";
import { withDeadline } from "./deadline.ts";
import { type Instance, readInstance } from "./instance.ts";
import type { PrimaryLog } from "./primary-log.ts";
import type { ReplicaStatus } from "./replica-status.ts";

export type Replica = {
  /** For messages: number and host, without the URL. */
  readonly name: string;
  readonly database: Database;
  /** The result of the last check. */
  readonly status: () => ReplicaStatus;
};

export type WatchedReplica = Replica & {
  /** Checks the replica, or waits for the check that is already running. */
  readonly check: () => Promise<void>;
};

export type ReplicaOptions = {
  /** Maximum number of live queries at once. */
  readonly connections: number;
  /** Time limit of a query, in milliseconds. */
  readonly queryTimeout: number;
  /** Maximum lag of a replica that is used, in milliseconds. */
  readonly maxLag: number;
};

export async function watchReplica(
  name: string,
  url: string,
  log: PrimaryLog,
  options: ReplicaOptions,
): Promise<WatchedReplica> {
  const { connections, queryTimeout, maxLag } = options;
  // One more than live queries may use, so that a check never waits for one of them.
  const database = await openDatabase({ url, dataDir: "", queryTimeout, connections: connections + 1 });
  let status: ReplicaStatus = { kind: "new" };
  /** Start time of the server that was last found to have the current schema: it is checked once for each start. */
  let migrated = "";

  /** The last reading, and a performance.now() at which it was complete. */
  let last: { readonly found: Instance; readonly time: number } | null = null;
  /** The starts of the replica and of the primary between which it was ahead: it cannot fall in line without another. */
  let aheadSince = "";

  async function judge(): Promise<ReplicaStatus> {
    const found = await withDeadline(database, readInstance);
    const kind = mismatchWithPrimary(found, log);
    if (kind !== null) return { kind };
    if (isAhead(found)) return { kind: "ahead" };
    if (migrated !== found.started) {
      const { missing } = await withDeadline(database, schemaState);
      if (missing.length > 0) return { kind: "unmigrated" };
      migrated = found.started;
    }
    return lagStatus(found, log, maxLag);
  }

  /** While the primary is away, a replica that is ahead may follow its successor. */
  function isAhead(found: Instance): boolean {
    const starts = `${found.started} ${log.primary()?.started}`;
    if (last?.found.started === found.started && log.isBeyond(last.found.position, last.time)) aheadSince = starts;
    last = { found, time: performance.now() };
    return aheadSince === starts && !log.isAway();
  }

  async function check(): Promise<void> {
    status = await judge().catch((error: unknown) => ({ kind: "away", why: messageOf(error) }));
  }

  return {
    name,
    database,
    status: () => status,
    check: shareRunning(check),
  };
}

/** Null for the primary and its copies. While the primary has never answered, also for any standby. */
function mismatchWithPrimary(
  found: Instance,
  log: PrimaryLog,
): "foreign" | "detached" | "diverged" | "disordered" | null {
  const primary = log.primary();
  if (primary !== null && (found.system !== primary.system || found.database !== primary.database)) return "foreign";
  if (!found.recovering && found.started !== primary?.started) return "detached";
  if (primary === null) return null;
  // While the primary is away, a promoted server counts as its successor.
  if (found.timeline > primary.timeline && !log.isAway()) return "diverged";
  return found.collationVersion === primary.collationVersion ? null : "disordered";
}

function lagStatus({ position, unapplied }: Instance, log: PrimaryLog, maxLag: number): ReplicaStatus {
  // Log that is received but not yet replayed is missing from answers, even though the primary writes nothing more.
  if (log.isAway() && unapplied !== null && unapplied > maxLag) return { kind: "behind", lag: unapplied };
  if (log.primary() === null) return { kind: "used", lag: unapplied };
  const lag = log.lagOf(position);
  if (lag !== null && lag <= maxLag) return { kind: "used", lag };
  return lag === null && log.age() <= maxLag ? { kind: "new" } : { kind: "behind", lag };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message || error.name : String(error);
}
