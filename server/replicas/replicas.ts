/** Checks the read replicas of a database repeatedly, and reports when one is no longer used or is used again. */
import type { Database } from "../../shared/database/database.ts";
import { followLog } from "./primary-log.ts";
import { type Replica, type ReplicaOptions, watchReplica } from "./replica.ts";
import { describeStatus } from "./replica-status.ts";

export type Replicas = {
  readonly all: readonly Replica[];
  /** Reports each replica that is not used now, and from now on each that is no longer used or is used again. */
  readonly report: (report: (news: string) => void) => void;
  /** From now on calls `tell` at each check that the primary does not answer. */
  readonly watchPrimary: (tell: () => void) => void;
  readonly close: () => Promise<void>;
};

export type ReplicasOptions = ReplicaOptions & { readonly urls: readonly string[] };

export class ReplicaError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "ReplicaError";
  }
}

const LONGEST_PAUSE = 1_000;
/** Number of checks within the maximum lag: a replica's known state may be as old as the pause between two checks. */
const CHECKS_WITHIN_LAG = 4;
/** Minimum time, in milliseconds, for which log positions of the primary are remembered: a longer lag is unknown. */
const MEMORY = 600_000;

/** Resolves when each replica has been checked once. It does not fail when one of them is away or behind. */
export async function openReplicas(primary: Database, options: ReplicasOptions): Promise<Replicas> {
  const { urls, maxLag } = options;
  if (urls.length === 0) return { all: [], report: () => {}, watchPrimary: () => {}, close: async () => {} };
  const log = followLog(primary, Math.max(MEMORY, maxLag * 2));
  const all = await Promise.all(urls.map((url, index) => watchReplica(nameOf(url, index), url, log, options)));
  const unused = new Set<Replica>();
  let onChange: ((news: string) => void) | null = null;
  let onPrimaryAway = () => {};
  let timer: NodeJS.Timeout | undefined;
  let closed = false;

  function reportChange(replica: Replica): void {
    const status = replica.status();
    const isUnused = status.kind !== "used";
    if (closed || onChange === null || status.kind === "new" || isUnused === unused.has(replica)) return;
    if (isUnused) unused.add(replica);
    else unused.delete(replica);
    const { name } = replica;
    onChange(isUnused ? `${name} is not used: ${describeStatus(status)}.` : `${name} answers live requests again.`);
  }

  async function watch(): Promise<void> {
    await log.check();
    if (log.isAway()) onPrimaryAway();
    for (const replica of all) void replica.check().then(() => reportChange(replica));
    watchSoon();
  }

  function watchSoon(): void {
    if (!closed) timer = setTimeout(watch, Math.min(LONGEST_PAUSE, maxLag / CHECKS_WITHIN_LAG));
  }

  await log.check();
  await Promise.all(all.map(({ check }) => check()));
  watchSoon();
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
      closed = true;
      clearTimeout(timer);
      await Promise.all(all.map(({ database }) => database.close()));
    },
  };
}

/** Throws a ReplicaError when one of them is known to be no copy of the primary. */
export function needCopies(replicas: readonly Replica[]): void {
  const foreign = replicas.filter(({ status }) => status().kind === "foreign");
  if (foreign.length === 0) return;
  const refusals = foreign.map(
    ({ name }) =>
      `${name} is not a copy of the database at --database-url. --read-database-url accepts only streaming replicas of it.`,
  );
  throw new ReplicaError(refusals.join("\n"));
}

/** Does not contain the whole URL, which may hold a password. */
function nameOf(url: string, index: number): string {
  const host = URL.canParse(url) ? new URL(url).host : "";
  return `Replica ${index + 1}${host === "" ? "" : ` (${host})`}`;
}
