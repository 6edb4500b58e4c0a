/** One read replica: a database of its own, and whether it may stand for the primary. */
import type { Database } from "../../shared/database/database.ts";
import { openDatabase } from "../../shared/database/open.ts";
import { schemaState } from "../../shared/schema/migrate.ts";
import { inTime } from "./deadline.ts";
import { type Instance, readInstance } from "./instance.ts";
import type { PrimaryLog } from "./primary-log.ts";
import type { Standing } from "./standing.ts";

export type Replica = {
  /** For people. */
  readonly name: string;
  readonly database: Database;
  /** As it was when it was last looked at. */
  readonly standing: () => Standing;
};

export type Watched = Replica & {
  /** Looks how it is, unless a look is on its way. */
  readonly look: () => Promise<void>;
};

export type ReplicaOptions = {
  /** Queries at once at most. */
  readonly connections: number;
  /** Milliseconds, of a query. */
  readonly queryTimeout: number;
  /** Milliseconds for which a replica that is used may lack what was written. */
  readonly maxLag: number;
};

export async function watchReplica(
  name: string,
  url: string,
  log: PrimaryLog,
  options: ReplicaOptions,
): Promise<Watched> {
  const { connections, queryTimeout, maxLag } = options;
  // One more than live queries may take, so that a look never waits for one of them.
  const database = await openDatabase({ url, dataDir: "", queryTimeout, connections: connections + 1 });
  let standing: Standing = { kind: "new" };
  let looking: Promise<void> | null = null;
  /** The start of the server that was seen to have the tables: what it has, it keeps. */
  let migrated = "";

  async function judge(): Promise<Standing> {
    const found = await inTime(database, readInstance);
    const kind = kinship(found, log);
    if (kind !== null) return { kind };
    if (migrated !== found.started) {
      const { missing } = await inTime(database, schemaState);
      if (missing.length > 0) return { kind: "unmigrated" };
      migrated = found.started;
    }
    return nearness(found, log, maxLag);
  }

  async function look(): Promise<void> {
    standing = await judge().catch((error: unknown) => ({ kind: "away", why: wordsOf(error) }));
  }

  return {
    name,
    database,
    standing: () => standing,
    look: () => {
      looking ??= look().finally(() => {
        looking = null;
      });
      return looking;
    },
  };
}

/** Null for a copy of the primary, and for the primary itself. What was never seen may be anybody's. */
function kinship(found: Instance, log: PrimaryLog): "foreign" | "detached" | "diverged" | "disordered" | null {
  const primary = log.primary();
  if (primary !== null && (found.system !== primary.system || found.database !== primary.database)) return "foreign";
  if (!found.recovering && found.started !== primary?.started) return "detached";
  if (primary === null) return null;
  // In place of a primary that is away the one that was promoted is its successor.
  if (found.timeline > primary.timeline && !log.isAway()) return "diverged";
  return found.order === primary.order ? null : "disordered";
}

function nearness({ position, unapplied }: Instance, log: PrimaryLog, maxLag: number): Standing {
  // What it holds and has not applied it lacks, though the primary adds nothing any more.
  if (log.isAway() && unapplied !== null && unapplied > maxLag) return { kind: "behind", lag: unapplied };
  if (log.primary() === null) return { kind: "used", lag: unapplied };
  const lag = log.lagOf(position);
  if (lag !== null && lag <= maxLag) return { kind: "used", lag };
  return lag === null && log.age() <= maxLag ? { kind: "new" } : { kind: "behind", lag };
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message || error.name : String(error);
}
