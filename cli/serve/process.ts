/** Assembles what each process of a server needs: its settings, its databases, and the site that answers from them. */
import { leavePrimary, sendToPrimary, waitForStop } from "../../server/cluster.ts";
import type { TreeStore } from "../../server/deployed/store.ts";
import { LIMITS, type Listening, shareLimit } from "../../server/http/listen.ts";
import type { Log } from "../../server/log.ts";
import type { Gauges, Metrics } from "../../server/metrics.ts";
import { openReplicas, type Replicas } from "../../server/replicas.ts";
import { openSite } from "../../server/serve.ts";
import { openAttempts, shareRunning } from "../../shared/async.ts";
import type { CommonName, Settings } from "../../shared/config.ts";
import type { Database } from "../../shared/database/database.ts";
import { DatabaseFault } from "../../shared/database/errors.ts";
import { appsOfTree } from "../../shared/tree.ts";
import { type Context, DONE, FAILED } from "../command.ts";
import { databaseOptions, openDatabase, QUERY_TIMEOUT } from "../database.ts";
import { describeFailure } from "../errors.ts";

export const SERVE_SETTINGS = [
  "host",
  "port",
  "readDatabaseUrl",
  "maxReplicaLag",
  "workers",
  "watch",
  "drain",
  "maxConnections",
  "connections",
  "queue",
  "memoryCache",
  "tree",
  "treeRefresh",
  "treeCache",
  "endpoint",
  "region",
  "pathStyle",
  "accessKeyId",
  "secretAccessKey",
  "sessionToken",
  "ledgerSync",
  "cacheControl",
  "cdnCacheControl",
  "cacheTags",
  "treePaths",
  "adminPort",
  "adminHost",
  "mediaPort",
  "mediaHost",
  "studio",
  "logLevel",
  "trustedProxy",
] as const;
export type ServeSettings = Settings<(typeof SERVE_SETTINGS)[number] | CommonName>;

/** What each process of a server has. Errors that occur while it runs go to its log. */
export type Process = { readonly context: Context; readonly settings: ServeSettings; readonly log: Log };

/** The databases that answer live requests: the primary and its replicas. */
export type Databases = { readonly database: Database; readonly replicas: Replicas };

export async function withDatabases(
  settings: ServeSettings,
  use: (databases: Databases) => Promise<void>,
): Promise<void> {
  const { connections, readDatabaseUrl: urls, maxReplicaLag } = settings;
  // More than live queries may use, so that neither the ledger nor the replica checks wait for one of them.
  const limits = { connections: connections + (urls.length === 0 ? 1 : 2), queryTimeout: QUERY_TIMEOUT };
  const database = await openDatabase(databaseOptions(settings, { ...limits, share: true }));
  try {
    const maxLag = maxReplicaLag * 1_000;
    const replicas = await openReplicas(database, { urls, connections, queryTimeout: QUERY_TIMEOUT, maxLag });
    await use({ database, replicas }).finally(replicas.close);
  } finally {
    await database.close();
  }
}

/** Opens the site of this process with its settings. */
export async function openOwnSite(process: Process, databases: Databases, metrics: Metrics | null): Promise<Listening> {
  const { context, settings, log } = process;
  return openSite(databases.database, {
    ...settings,
    treeStore: await openOwnTreeStore(process),
    replicas: databases.replicas.all,
    watchPrimary: databases.replicas.watchPrimary,
    queryTimeout: QUERY_TIMEOUT,
    limits: { ...LIMITS, drain: settings.drain * 1_000, connections: settings.maxConnections },
    policy: { browsers: settings.cacheControl, cdns: settings.cdnCacheControl, tagged: settings.cacheTags },
    durability: settings.ledgerSync ? "power" : "process",
    now: context.now,
    log,
    metrics,
  });
}

/** Null when the tree is read in `--out`. The code is imported on demand, because only servers with `--tree` need it. */
export async function openOwnTreeStore({ context, settings }: Process): Promise<TreeStore | null> {
  if (settings.tree === null) return null;
  const { openTreeStore } = await import("./tree-store.ts");
  return openTreeStore(settings.tree, settings, context.now);
}

/** Their code is imported on demand, because metrics are gathered only with an admin port. */
export async function openOwnMetrics(process: Process, { database }: Databases): Promise<Metrics> {
  const { openMetrics } = await import("../../server/metrics.ts");
  const metrics = openMetrics(process.log.dropped);
  // Of a tree that was deployed, only the builder knows how far it is behind.
  if (process.settings.tree === null) metrics.addGauges(await openDelay(process, database));
  return metrics;
}

/** Milliseconds that a scrape waits for the database. */
const SCRAPE_WAIT = 1_000;

/** How far the tree is behind the database; not reported without a tree of this database, or while it does not answer. */
async function openDelay({ context, settings, log }: Process, database: Database): Promise<Gauges> {
  const { countUnbuilt } = await import("../builder/delta.ts");
  const { readTreeAge } = await import("../../server/admin.ts");
  const { out } = settings;
  const treeAge = () => readTreeAge(out, context.now());
  const attempt = openAttempts((error) => {
    if (!(error instanceof DatabaseFault)) log.error(error);
  });
  let firstSeen: number | null = null;

  const count = async () => {
    const states = appsOfTree(out).flatMap(({ state }) => (state === null ? [] : [state]));
    let changes: number | null = null;
    if (states.length > 0)
      await attempt("count", async () => {
        changes = await countUnbuilt(database, states);
      });
    if (changes !== null) firstSeen = changes === 0 ? null : (firstSeen ?? performance.now());
    return changes;
  };
  // Both gauges ask at the same time.
  const changes = shareRunning(() => Promise.race([count(), giveUp()]));

  /** What is not built now came after the last build. */
  const seconds = async () => {
    if ((await changes()) === null) return null;
    const seen = firstSeen === null ? 0 : (performance.now() - firstSeen) / 1_000;
    return Math.min(seen, (await treeAge()) ?? seen);
  };
  return { treeAge, treeBehind: changes, treeBehindTime: seconds };
}

function giveUp(): Promise<null> {
  return new Promise((resolve) => setTimeout(resolve, SCRAPE_WAIT, null).unref());
}

// One of several processes of a server: answers requests, and reports only to the first process.

/** A worker prints nothing but its log: the first process prints results and failures, once for all workers. */
export async function serveAsWorker(process: Process): Promise<number> {
  const stop = waitForStop();
  const settings = shareOfWorker(process.settings);
  try {
    await withDatabases(settings, async (databases) => {
      const metrics = settings.adminPort === null ? null : await openOwnMetrics(process, databases);
      const { url, stop: end } = await openOwnSite({ ...process, settings }, databases, metrics);
      await sendToPrimary({ kind: "listening", url });
      await stop;
      await end();
    });
    return DONE;
  } catch (error) {
    await sendToPrimary({ kind: "failed", why: describeFailure(error) });
    return FAILED;
  } finally {
    leavePrimary();
  }
}

/** Limits are totals for all workers, so each worker gets its share of them. */
function shareOfWorker(settings: ServeSettings): ServeSettings {
  const { workers, maxConnections, connections, queue, memoryCache } = settings;
  return {
    ...settings,
    maxConnections: shareLimit(maxConnections, workers),
    connections: shareLimit(connections, workers),
    queue: shareLimit(queue, workers),
    memoryCache: Math.floor(memoryCache / workers),
  };
}
