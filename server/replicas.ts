/** Checks the read replicas of a database repeatedly, and reports when one is no longer used or is used again. */
import { repeat, shareRunning } from "../shared/async.ts";
import type { Database } from "../shared/database/database.ts";
import { schemaState } from "../shared/schema/migrate.ts";
import {
  checkPrimary,
  describeStatus,
  findLag,
  findTime,
  type Instance,
  isBeyond,
  type PrimaryLog,
  type ReplicaStatus,
  readInstance,
  UNCHECKED,
  type UnusedKind,
  withDeadline,
} from "./replica-status.ts";

export type Replicas = {
  readonly all: readonly Replica[];
  /** Reports each replica that is not used now, and from now on each that is no longer used or is used again. */
  readonly report: (report: (news: string) => void) => void;
  /** From now on calls `tell` at each check that the primary does not answer. */
  readonly watchPrimary: (tell: () => void) => void;
  readonly close: () => Promise<void>;
};

type ReplicasOptions = {
  readonly urls: readonly string[];
  /** Maximum number of live queries at once on each. */
  readonly connections: number;
  /** Time limit of a query, in milliseconds. */
  readonly queryTimeout: number;
  /** Maximum lag of a replica that is used, in milliseconds. */
  readonly maxLag: number;
};

class ReplicaError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "ReplicaError";
  }
}

const LONGEST_INTERVAL = 1_000;
/** Number of checks within the maximum lag: a replica's known state may be as old as the time between two checks. */
const CHECKS_WITHIN_LAG = 4;
/** Minimum time, in milliseconds, for which log positions of the primary are remembered: a longer lag is unknown. */
const MEMORY = 600_000;

/** Resolves when each replica has been checked once. It does not fail when one of them is away or behind. */
export async function openReplicas(primary: Database, options: ReplicasOptions): Promise<Replicas> {
  const { urls, maxLag } = options;
  if (urls.length === 0) return { all: [], report: () => {}, watchPrimary: () => {}, close: async () => {} };
  let log = UNCHECKED;
  const all = await Promise.all(
    urls.map((url, index) => openReplica(nameReplica(url, index), url, () => log, options)),
  );
  const unused = new Set<Replica>();
  let onChange: ((news: string) => void) | null = null;
  let onPrimaryAway = () => {};

  function reportChange(replica: Replica): void {
    const status = replica.status();
    const isUnused = status.kind !== "used";
    if (onChange === null || status.kind === "new" || isUnused === unused.has(replica)) return;
    if (isUnused) unused.add(replica);
    else unused.delete(replica);
    const { name } = replica;
    onChange(isUnused ? `${name} is not used: ${describeStatus(status)}.` : `${name} answers live requests again.`);
  }

  async function checkLog(): Promise<void> {
    log = await checkPrimary(primary, log, Math.max(MEMORY, maxLag * 2));
    if (log.isAway) onPrimaryAway();
  }

  /** Waits for no replica: one that does not answer must not hold up the checks of the others. */
  async function watch(): Promise<void> {
    await checkLog();
    for (const replica of all) void replica.check().then(() => reportChange(replica));
  }

  await checkLog();
  await Promise.all(all.map(({ check }) => check()));
  const stop = repeat(Math.min(LONGEST_INTERVAL, maxLag / CHECKS_WITHIN_LAG), watch, () => {});
  return {
    all,
    report: (report) => {
      onChange = report;
      for (const replica of all) reportChange(replica);
    },
    watchPrimary: (tell) => {
      onPrimaryAway = tell;
    },
    close: async () => {
      onChange = null;
      await Promise.all([stop(), ...all.map(({ database }) => database.close())]);
    },
  };
}

/** Throws a ReplicaError when one of them is known to be no copy of the primary. */
export function assertCopies(replicas: readonly Replica[]): void {
  const foreign = replicas.filter(({ status }) => status().kind === "foreign");
  if (foreign.length === 0) return;
  const refusals = foreign.map(
    ({ name }) =>
      `${name} is not a copy of the database at --database-url. --read-database-url accepts only streaming replicas of it.`,
  );
  throw new ReplicaError(refusals.join("\n"));
}

/** Does not contain the whole URL, which may hold a password. */
function nameReplica(url: string, index: number): string {
  const host = URL.canParse(url) ? new URL(url).host : "";
  return `Replica ${index + 1}${host === "" ? "" : ` (${host})`}`;
}

// One read replica: its own database connections, and whether it may answer in place of the primary.

export type Replica = {
  /** For messages: number and host, without the URL. */
  readonly name: string;
  readonly database: Database;
  /** The result of the last check. */
  readonly status: () => ReplicaStatus;
  /** Checks the replica, or waits for the check that is already running. */
  readonly check: () => Promise<void>;
};

async function openReplica(
  name: string,
  url: string,
  readLog: () => PrimaryLog,
  { connections, queryTimeout, maxLag }: ReplicasOptions,
): Promise<Replica> {
  // One more than live queries may use, so that a check never waits for one of them.
  const { openPostgres } = await import("../shared/database/postgres/postgres.ts");
  const database = await openPostgres(url, { url, dataDir: "", queryTimeout, connections: connections + 1 });
  let status: ReplicaStatus = { kind: "new" };
  /** Start time of the server that was last found to have the current schema: it is checked once for each start. */
  let migrated = "";

  /** The last reading, and a performance.now() at which it was complete. */
  let last: { readonly found: Instance; readonly time: number } | null = null;
  /** The starts of the replica and of the primary between which it was ahead: it cannot fall in line without another. */
  let aheadSince = "";

  async function judge(): Promise<ReplicaStatus> {
    const found = await withDeadline(database, readInstance);
    const log = readLog();
    const kind = findMismatch(found, log);
    if (kind !== null) return { kind };
    if (isAhead(found, log)) return { kind: "ahead" };
    if (migrated !== found.started) {
      const { missing } = await withDeadline(database, schemaState);
      if (missing.length > 0) return { kind: "unmigrated" };
      migrated = found.started;
    }
    return judgeLag(found, readLog(), maxLag);
  }

  /** While the primary is away, a replica that is ahead may follow its successor. */
  function isAhead(found: Instance, log: PrimaryLog): boolean {
    const starts = `${found.started} ${log.primary?.started}`;
    if (last?.found.started === found.started && isBeyond(log.marks, last.found.position, last.time))
      aheadSince = starts;
    last = { found, time: performance.now() };
    return aheadSince === starts && !log.isAway;
  }

  async function check(): Promise<void> {
    status = await judge().catch((error: unknown) => ({ kind: "away", why: describeError(error) }));
  }

  return {
    name,
    database,
    status: () => status,
    check: shareRunning(check),
  };
}

/** Null for the primary and its copies. While the primary has never answered, also for any standby. */
function findMismatch(found: Instance, { primary, isAway }: PrimaryLog): UnusedKind | null {
  if (primary !== null && (found.system !== primary.system || found.database !== primary.database)) return "foreign";
  if (!found.recovering && found.started !== primary?.started) return "detached";
  if (primary === null) return null;
  // While the primary is away, a promoted server counts as its successor.
  if (found.timeline > primary.timeline && !isAway) return "diverged";
  return found.collationVersion === primary.collationVersion ? null : "disordered";
}

function judgeLag({ position, unapplied }: Instance, log: PrimaryLog, maxLag: number): ReplicaStatus {
  // Log that is received but not yet replayed is missing from answers, even though the primary writes nothing more.
  if (log.isAway && unapplied !== null && unapplied > maxLag) return { kind: "behind", lag: unapplied };
  if (log.primary === null) return { kind: "used", lag: unapplied };
  const time = findTime(log);
  const lag = findLag(log.marks, position, time);
  if (lag !== null && lag <= maxLag) return { kind: "used", lag };
  return lag === null && time - log.since <= maxLag ? { kind: "new" } : { kind: "behind", lag };
}

function describeError(error: unknown): string {
  return error instanceof Error ? error.message || error.name : String(error);
}
