/** `precast serve`: answers from the tree and the database, in one process or in several. */
import type { Control } from "../../server/admin/control.ts";
import type { Metrics } from "../../server/admin/metrics.ts";
import { LIMITS, shareOf } from "../../server/http/limits.ts";
import type { Listening } from "../../server/http/listen.ts";
import { needCopies, openReplicas, type Replicas } from "../../server/live/replicas.ts";
import { readStanding } from "../../server/live/standing.ts";
import { type Log, openLog } from "../../server/log/log.ts";
import { openSite } from "../../server/site.ts";
import { openTree } from "../../server/tree/tree.ts";
import { isWorker, leavePrimary, orderedToStop, tellPrimary } from "../../server/worker.ts";
import { openWorkers } from "../../server/workers.ts";
import type { App } from "../../shared/catalog.ts";
import type { CommonName, Settings } from "../../shared/config.ts";
import type { Database } from "../../shared/database/database.ts";
import { DatabaseFault } from "../../shared/database/fault.ts";
import { openDatabase } from "../../shared/database/open.ts";
import { machineId } from "../../shared/machine.ts";
import { builtApps } from "../build/selection.ts";
import { type Context, DONE, defineCommand, FAILED } from "../command.ts";
import { databaseName, databaseOptions, needSchema, QUERY_TIMEOUT } from "../database.ts";
import { describeFailure } from "../failure.ts";
import { requestsToTry } from "../tour.ts";

const SETTINGS = [
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
type ServeSettings = Settings<(typeof SETTINGS)[number] | CommonName>;

export const serveCommand = defineCommand({
  name: "serve",
  describes: "answer the API from the tree, and live what the tree does not hold",
  argument: null,
  settings: SETTINGS,
  examples: [
    "precast serve",
    "precast serve --watch",
    "precast serve --host 0.0.0.0 --port 8080 --out /var/lib/precast",
    "precast serve --workers 4 --connections 40 --admin-port 9090",
    "precast serve --read-database-url postgres://replica-1/cms --max-replica-lag 2",
  ],
  run: async (context, settings) => {
    const { terminal } = context;
    const level = settings.logLevel ?? (settings.quiet ? "warn" : "info");
    const log = await openLog({ level, descriptor: STANDARD_ERROR, shared: settings.workers > 1, ...terminal.log });
    const process = { context: { ...context, terminal: { ...terminal, warn: log.warn } }, settings, log };
    try {
      return await (isWorker() ? serveAsWorker(process) : serveAsFirst(process));
    } finally {
      await log.close();
    }
  },
});

/** The file number. */
const STANDARD_ERROR = 2;

/** What each process of a server has. What goes wrong while it runs is told in its log. */
type Process = { readonly context: Context; readonly settings: ServeSettings; readonly log: Log };

async function serveAsFirst(process: Process): Promise<number> {
  const { settings } = process;
  // Workers use the embedded database through this process, and have connections to PostgreSQL of their own.
  const own = settings.workers === 1 ? settings : { ...settings, connections: 1 };
  await withDatabases(own, (databases) => serve(process, databases));
  return DONE;
}

/** What answers live. */
type Databases = { readonly database: Database; readonly replicas: Replicas };

async function withDatabases(settings: ServeSettings, use: (databases: Databases) => Promise<void>): Promise<void> {
  const { connections, readDatabaseUrl: urls, maxReplicaLag } = settings;
  // More than live queries may take, so that neither the ledger nor the watch over replicas waits for one of them.
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

const BY_REPLICAS = "the others by its replicas, and counts wait on disk";
const REFUSED = "the others are 503";

async function serve(process: Process, databases: Databases): Promise<void> {
  const { database, replicas } = databases;
  const { context, settings, log } = process;
  const { terminal, stopped } = context;
  const stop = stopped();
  // The tree answers without the database: one that is away is no reason not to start.
  await needSchema(database).catch((error: unknown) => {
    if (!(error instanceof DatabaseFault)) throw error;
    const others = replicas.all.some(({ standing }) => standing().kind === "used") ? BY_REPLICAS : REFUSED;
    const away = `The database does not answer (${error.message})`;
    log.warn(`${away}. Free requests are served from the tree, ${others} until it is back.`);
  });
  needCopies(replicas.all);
  replicas.tell(log.warn);
  const watched = await openWatched(process, databases);
  try {
    const server = await openServer(process, databases, watched?.metrics ?? null);
    let endWatch = async () => {};
    try {
      const told = { url: server.url, ...(watched === null ? {} : { admin: watched.control.url }) };
      terminal.result(`${terminal.colors.green("Precast serves")} ${server.url}`, told);
      if (watched !== null) terminal.say(`Health and metrics: ${watched.control.url}`);
      const app = await firstApp(settings.out);
      terminal.say(app === null ? treelessText(settings) : tourText(server.url, app));
      if (settings.watch) endWatch = (await loadWatcher())(context, settings, database);
      await stop;
      watched?.control.drain();
      terminal.say("Stopping: open requests are finished.");
    } finally {
      await Promise.all([endWatch(), server.stop()]);
    }
  } finally {
    await watched?.control.close();
  }
}

function treelessText(settings: ServeSettings): string {
  return `No tree in ${settings.out}: everything is answered live, from ${databaseName(settings)}.`;
}

function tourText(url: string, app: App): string {
  return ["Try:", ...requestsToTry(url, app).map((request) => `  ${request}`)].join("\n");
}

/** Who does not watch builds nothing. */
async function loadWatcher() {
  return (await import("../watch/watcher.ts")).startWatcher;
}

type Watched = { readonly control: Control; readonly metrics: Metrics };

/** Loaded where it is asked for. It listens before the API does, so that health can be asked from the first moment on. */
async function openWatched(process: Process, { database, replicas }: Databases): Promise<Watched | null> {
  const { context, settings, log } = process;
  const { adminHost: host, adminPort: port, out, workers } = settings;
  if (port === null) return null;
  const metrics = await openMetricsOf(log);
  const { openControl } = await import("../../server/admin/control.ts");
  const { gatherMetrics } = await import("../../server/admin/worker-metrics.ts");
  const text = workers === 1 ? metrics.text : gatherMetrics(metrics);
  const standings = () => replicas.all.map(({ standing }) => readStanding(standing()));
  const what = { out, database, replicas: standings, now: context.now, metrics, text, onError: log.error };
  const control = await openControl({ host, port, ...what }).catch((error: NodeJS.ErrnoException) => {
    throw error.code === "EADDRINUSE" ? new Error(ADMIN_PORT_IN_USE) : error;
  });
  return { control, metrics };
}

const ADMIN_PORT_IN_USE = "The admin port is in use. Choose another with --admin-port, or stop what listens there.";

async function openMetricsOf(log: Log): Promise<Metrics> {
  const { openMetrics } = await import("../../server/admin/metrics.ts");
  return openMetrics(log.dropped);
}

/** Milliseconds for what a worker does beside its drain: to send its counts, to start or to end. */
const WORKER_GRACE = 10_000;

function openServer(process: Process, databases: Databases, metrics: Metrics | null): Promise<Listening> {
  const { workers, host, port, drain } = process.settings;
  if (workers === 1) return openOwnSite(process, databases, metrics);
  const limit = drain * 1_000 + WORKER_GRACE;
  return openWorkers({ count: workers, host, port, limit, warn: process.log.warn });
}

/** Everything that a process which answers is told of its settings. */
function openOwnSite(process: Process, databases: Databases, metrics: Metrics | null): Promise<Listening> {
  const { context, settings, log } = process;
  return openSite(databases.database, {
    ...settings,
    replicas: databases.replicas.all,
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

/** A worker says nothing itself but in its log: its primary does, once for all of them. */
async function serveAsWorker({ context, settings, log }: Process): Promise<number> {
  const stop = orderedToStop();
  const share = shareOfWorker(settings);
  try {
    await withDatabases(share, async (databases) => {
      const metrics = settings.adminPort === null ? null : await openMetricsOf(log);
      if (metrics !== null) (await import("../../server/admin/worker-metrics.ts")).tellMetrics(metrics);
      const { url, stop: end } = await openOwnSite({ context, settings: share, log }, databases, metrics);
      await tellPrimary({ kind: "listening", url });
      await stop;
      await end();
    });
    return DONE;
  } catch (error) {
    await tellPrimary({ kind: "failed", why: describeFailure(error) });
    return FAILED;
  } finally {
    leavePrimary();
  }
}

/** What is limited is limited for all workers together. */
function shareOfWorker(settings: ServeSettings): ServeSettings {
  const { workers, maxConnections, connections, queue, memoryCache } = settings;
  return {
    ...settings,
    maxConnections: shareOf(maxConnections, workers),
    connections: shareOf(connections, workers),
    queue: shareOf(queue, workers),
    memoryCache: Math.floor(memoryCache / workers),
  };
}

async function firstApp(out: string): Promise<App | null> {
  const key = builtApps(out)[0];
  return key === undefined ? null : ((await openTree(out).findTree(key))?.app ?? null);
}
