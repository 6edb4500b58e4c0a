/** Assembles what one serving process consists of: opens the parts in order and closes them in reverse order. */
import { join } from "node:path";
import type { CachePolicy } from "../shared/api/answer.ts";
import type { Database } from "../shared/database/database.ts";
import { createApp } from "./app.ts";
import { type Hits, openCache, openHits, openResolvedRequests } from "./cache.ts";
import type { TreeStore } from "./deployed/store.ts";
import type { ConnectionCounts, Limits } from "./http/connection.ts";
import { type Listening, listen } from "./http/listen.ts";
import { combineObservers, openAccessLog } from "./http/observe.ts";
import { type Ledger, type LedgerOptions, openLedger } from "./ledger/ledger.ts";
import { findLedgerFolder } from "./ledger/owner.ts";
import type { KeptAnswer } from "./live/cache.ts";
import { type Live, type LiveOptions, openLive } from "./live/live.ts";
import type { Log } from "./log.ts";
import type { DatabaseReadings, Gauges, Metrics } from "./metrics.ts";
import { readHealth } from "./replica-status.ts";
import type { Replica } from "./replicas.ts";
import { openTree, type Tree } from "./tree.ts";

type SiteOptions = Omit<LiveOptions, "answerCache" | "report"> &
  Pick<LedgerOptions, "durability" | "now"> & {
    readonly host: string;
    readonly port: number;
    /** Folder of the tree. */
    readonly out: string;
    /** Where the tree was deployed to, if it is read there; null when it is read in `out`. */
    readonly treeStore: TreeStore | null;
    /** Seconds after a deploy within which answers are the new ones. */
    readonly treeRefresh: number;
    /** Megabytes on disk for what is kept of a tree in a store. */
    readonly treeCache: number;
    /** Data directory. The journals of the ledger are in its folder `ledger`. */
    readonly dataDir: string;
    /** Megabytes of memory for kept answers, of the tree and of the database together. */
    readonly memoryCache: number;
    readonly policy: CachePolicy;
    /** Whether a request for a tree file's path is answered like the API request whose answer that file holds. */
    readonly treePaths: boolean;
    /** Addresses and ranges of proxies whose X-Forwarded-For is believed. */
    readonly trustedProxy: readonly string[];
    readonly limits: Limits;
    readonly log: Log;
    /** Null when metrics are not served. */
    readonly metrics: Metrics | null;
  };

const MEGABYTE = 1_000_000;
/** Bytes of memory for parsed requests and their plans. */
const RESOLVED_REQUESTS_BYTES = 8 * MEGABYTE;
/** Share of the answer memory that is for answers of the tree; live answers get the rest. */
const TREE_SHARE = 0.75;

export async function openSite(database: Database, options: SiteOptions): Promise<Listening> {
  const { host, port, policy, treePaths, limits, log, metrics } = options;
  const onError = log.error;
  const ledger = await openLedger(database, { ...options, folder: findLedgerFolder(options.dataDir), onError });
  const memory = options.memoryCache * MEGABYTE;
  const answerCache = openCache<KeptAnswer>(memory * (1 - TREE_SHARE));
  const live = openLive(database, { ...options, answerCache, report: log.warn });
  const hits = openHits(memory * TREE_SHARE);
  const close = async () => {
    live.close();
    await ledger.close();
  };
  const replicas = options.replicas ?? [];
  metrics?.addGauges({
    ...openGauges(live, ledger, hits),
    ...countConnections([database, ...replicas.map(pickDatabase)]),
  });
  if (replicas.length > 0) metrics?.addReplicas(() => readDatabases(live, replicas));
  const sources = {
    ...(await openSiteTree(live, options)),
    ...live,
    resolvedRequests: openResolvedRequests(RESOLVED_REQUESTS_BYTES),
    onError,
  };
  const observe = combineObservers(metrics?.observe ?? null, openAccessLog(log.info, options.trustedProxy));
  const app = createApp({ sources, isRefusing: live.isRefusing, hits, ledger, policy, treePaths, observe });
  try {
    const { url, stop, connections } = await listen(app, host, port, limits, observe, log.warn);
    metrics?.addGauges(countClients(connections));
    return { url, stop: () => stop().then(close) };
  } catch (error) {
    await close();
    throw error;
  }
}

/** What reads a deployed tree is imported on demand, because most servers have theirs in a folder. */
async function openSiteTree(live: Live, options: SiteOptions): Promise<Tree> {
  const { out, treeStore: store, treeRefresh, treeCache, dataDir, log, metrics } = options;
  if (store === null) return openTree(out, log.warn);
  const { openDeployedTree } = await import("./deployed/tree.ts");
  const tree = openDeployedTree({
    store,
    folder: join(dataDir, "tree-cache"),
    maxBytes: treeCache * MEGABYTE,
    refresh: treeRefresh * 1_000,
    // While the database cannot tell, the store is asked.
    hasApp: (appKey) =>
      live.findApp(appKey, new AbortController().signal).then(
        (app) => app !== null,
        () => true,
      ),
    report: log.warn,
  });
  metrics?.addGauges({ treeStoreUp: () => (tree.isAway() ? 0 : 1) });
  return tree;
}

function openGauges(live: Live, ledger: Ledger, hits: Hits): Gauges {
  return {
    liveWaiting: () => live.state().waiting,
    liveRunning: () => live.state().running,
    databaseUp: () => (live.state().databaseAway ? 0 : 1),
    ledgerPending: () => ledger.backlog().requests,
    ledgerLag: () => ledger.backlog().seconds,
    cacheBytes: () => hits.size().bytes,
    cacheEntries: () => hits.size().entries,
  };
}

function countConnections(databases: readonly Database[]): Gauges {
  const sum = (name: "open" | "idle") => databases.reduce((total, one) => total + one.connections()[name], 0);
  return { databaseConnections: () => sum("open"), databaseConnectionsIdle: () => sum("idle") };
}

function countClients(counts: () => ConnectionCounts): Gauges {
  return {
    connectionsOpen: () => counts().open,
    connectionsRefused: () => counts().refused,
    connectionsEvicted: () => counts().evicted,
  };
}

const pickDatabase = ({ database }: Replica): Database => database;

function readDatabases(live: Live, replicas: readonly Replica[]): DatabaseReadings {
  const [primary = 0, ...answered] = live.answered();
  const read = ({ status }: Replica, index: number) => ({
    ...readHealth(status()),
    answered: answered[index] ?? 0,
  });
  return { primary: { answered: primary }, replicas: replicas.map(read) };
}
