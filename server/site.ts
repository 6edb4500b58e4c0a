/** What a process that answers is made of, opened in its order and closed the other way round. */
import { join } from "node:path";
import type { CachePolicy } from "../shared/answer.ts";
import type { Database } from "../shared/database/database.ts";
import type { DatabaseReadings, Gauges, Metrics } from "./admin/metrics.ts";
import { createApp } from "./app.ts";
import type { Limits } from "./http/limits.ts";
import { type Listening, listen } from "./http/listen.ts";
import { observeBy } from "./http/observation.ts";
import { type Ledger, type LedgerOptions, openLedger } from "./ledger/ledger.ts";
import type { KeptAnswer } from "./live/kept.ts";
import { type Live, type LiveOptions, openLive } from "./live/live.ts";
import { openAccessLog } from "./log/access-line.ts";
import type { Log } from "./log/log.ts";
import { openCache } from "./memory/cache.ts";
import { type Hits, openHits } from "./memory/hits.ts";
import { openReadings } from "./memory/readings.ts";
import type { Replica } from "./replicas/replica.ts";
import { readStanding } from "./replicas/standing.ts";
import { openTree } from "./tree/tree.ts";

export type SiteOptions = Omit<LiveOptions, "keeper"> &
  Pick<LedgerOptions, "machine" | "durability" | "now"> & {
    readonly host: string;
    readonly port: number;
    /** Where the tree is. */
    readonly out: string;
    /** Where the ledger is. */
    readonly dataDir: string;
    /** Megabytes for answers that are asked for again. */
    readonly memoryCache: number;
    readonly policy: CachePolicy;
    /** Whether paths of the tree are answered as the requests that they stand for. */
    readonly treePaths: boolean;
    readonly limits: Limits;
    readonly log: Log;
    /** Null where nobody asks for them. */
    readonly metrics: Metrics | null;
  };

const MEGABYTE = 1_000_000;
/** For what requests mean. */
const READINGS = 8 * MEGABYTE;
/** The share of the tree in the memory for answers; the rest is for those of the database. */
const TREE_SHARE = 0.75;

export async function openSite(database: Database, options: SiteOptions): Promise<Listening> {
  const { host, port, policy, treePaths, limits, log, metrics } = options;
  const onError = log.error;
  const ledger = await openLedger(database, { ...options, folder: join(options.dataDir, "ledger"), onError });
  const memory = options.memoryCache * MEGABYTE;
  const keeper = openCache<KeptAnswer>(memory * (1 - TREE_SHARE));
  const live = openLive(database, { ...options, keeper });
  const hits = openHits(memory * TREE_SHARE);
  const close = async () => {
    live.close();
    await ledger.close();
  };
  const replicas = options.replicas ?? [];
  metrics?.watch({ ...gaugesOf(live, ledger, hits), ...connectionsOf([database, ...replicas.map(databaseOf)]) });
  if (replicas.length > 0) metrics?.watchReplicas(() => readingsOf(live, replicas));
  const sources = { ...openTree(options.out), ...hideKeys(live, log), readings: openReadings(READINGS), onError };
  const observe = observeBy(metrics?.observe ?? null, openAccessLog(log.info));
  const app = createApp({ sources, isCrowded: live.isCrowded, hits, ledger, policy, treePaths, observe });
  try {
    const { url, stop } = await listen(app, host, port, limits, observe);
    return { url, stop: () => stop().then(close) };
  } catch (error) {
    await close();
    throw error;
  }
}

function gaugesOf(live: Live, ledger: Ledger, hits: Hits): Gauges {
  return {
    liveWaiting: () => live.state().waiting,
    liveRunning: () => live.state().running,
    ledgerPending: () => ledger.backlog().requests,
    ledgerLag: () => ledger.backlog().seconds,
    cacheBytes: () => hits.size().bytes,
    cacheEntries: () => hits.size().entries,
  };
}

function connectionsOf(databases: readonly Database[]): Gauges {
  const sum = (name: "open" | "idle") => databases.reduce((total, one) => total + one.connections()[name], 0);
  return { databaseConnections: () => sum("open"), databaseConnectionsIdle: () => sum("idle") };
}

const databaseOf = ({ database }: Replica): Database => database;

function readingsOf(live: Live, replicas: readonly Replica[]): DatabaseReadings {
  const [primary = 0, ...answered] = live.answered();
  const read = ({ standing }: Replica, index: number) => ({
    ...readStanding(standing()),
    answered: answered[index] ?? 0,
  });
  return { primary: { answered: primary }, replicas: replicas.map(read) };
}

/** The log learns the keys of the apps whose answers can fail, so as not to show them. Keys that nobody has are any word. */
function hideKeys(live: Live, log: Log): Live {
  return {
    ...live,
    findApp: async (...asked) => {
      const app = await live.findApp(...asked);
      if (app !== null) log.hide(app.key);
      return app;
    },
    answer: (...asked) => {
      log.hide(asked[0].key);
      return live.answer(...asked);
    },
  };
}
