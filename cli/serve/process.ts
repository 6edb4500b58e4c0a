/** Assembles what each process of a server needs: its settings, its databases, and the site that answers from them. */
import type { Metrics } from "../../server/admin/metrics.ts";
import { LIMITS } from "../../server/http/limits.ts";
import type { Listening } from "../../server/http/listen.ts";
import type { Log } from "../../server/log/log.ts";
import { openReplicas, type Replicas } from "../../server/replicas/replicas.ts";
import { openSite } from "../../server/site.ts";
import type { CommonName, Settings } from "../../shared/config.ts";
import type { Database } from "../../shared/database/database.ts";
import { openDatabase } from "../../shared/database/open.ts";
import { machineId } from "../../shared/machine.ts";
import type { Context } from "../command.ts";
import { databaseOptions, QUERY_TIMEOUT } from "../database.ts";

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
  "ledgerSync",
  "cacheControl",
  "cdnCacheControl",
  "cacheTags",
  "treePaths",
  "adminPort",
  "adminHost",
  "logLevel",
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
export function openOwnSite(process: Process, databases: Databases, metrics: Metrics | null): Promise<Listening> {
  const { context, settings, log } = process;
  return openSite(databases.database, {
    ...settings,
    replicas: databases.replicas.all,
    watchPrimary: databases.replicas.watchPrimary,
    queryTimeout: QUERY_TIMEOUT,
    limits: { ...LIMITS, drain: settings.drain * 1_000, connections: settings.maxConnections },
    policy: { browsers: settings.cacheControl, cdns: settings.cdnCacheControl, tagged: settings.cacheTags },
    machine: machineId(),
    durability: settings.ledgerSync ? "power" : "process",
    now: context.now,
    log,
    metrics,
  });
}

export async function openMetricsOf(log: Log): Promise<Metrics> {
  const { openMetrics } = await import("../../server/admin/metrics.ts");
  return openMetrics(log.dropped);
}
