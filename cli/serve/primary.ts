/** The first process of a server: it answers, or sees to the workers that do, and tells a person where. */
import type { Control, ControlOptions } from "../../server/admin/control.ts";
import type { Metrics } from "../../server/admin/metrics.ts";
import type { Listening } from "../../server/http/listen.ts";
import { needCopies } from "../../server/replicas/replicas.ts";
import { readStanding } from "../../server/replicas/standing.ts";
import { openTree } from "../../server/tree/tree.ts";
import { openWorkers } from "../../server/workers.ts";
import type { App } from "../../shared/catalog.ts";
import type { Database } from "../../shared/database/database.ts";
import { DatabaseFault } from "../../shared/database/fault.ts";
import { builtApps } from "../build/selection.ts";
import { DONE } from "../command.ts";
import { databaseName, needSchema } from "../database.ts";
import {
  type Databases,
  openMetricsOf,
  openOwnSite,
  type Process,
  type ServeSettings,
  withDatabases,
} from "./process.ts";
import { needRights } from "./rights.ts";
import { requestsToTry } from "./tour.ts";

export async function serveAsFirst(process: Process): Promise<number> {
  const { settings } = process;
  // Workers use the embedded database through this process, and have connections to PostgreSQL of their own.
  const own = settings.workers === 1 ? settings : { ...settings, connections: 1 };
  await withDatabases(own, (databases) => serve(process, databases));
  return DONE;
}

const BY_REPLICAS = "the others by its replicas, and counts wait on disk";
const REFUSED = "the others are 503";

async function serve(process: Process, databases: Databases): Promise<void> {
  const { database, replicas } = databases;
  const { context, settings, log } = process;
  const { terminal, stopped } = context;
  const stop = stopped();
  // The tree answers without the database: one that is away is no reason not to start.
  await needUsable(database).catch((error: unknown) => {
    if (!(error instanceof DatabaseFault)) throw error;
    const others = replicas.all.some(({ standing }) => standing().kind === "used") ? BY_REPLICAS : REFUSED;
    const away = `The database does not answer (${error.message})`;
    log.warn(`${away}. Free requests are served from the tree, ${others} until it is back.`);
  });
  needCopies(replicas.all);
  replicas.tell(log.warn);
  const app = await firstApp(settings.out);
  const watched = await openWatched(process, databases);
  try {
    const server = await openServer(process, databases, watched?.metrics ?? null, stop);
    if (server === null) return;
    let endWatch = async () => {};
    try {
      const told = { url: server.url, ...(watched === null ? {} : { admin: watched.control.url }) };
      terminal.result(`${terminal.colors.green("Precast serves")} ${server.url}`, told);
      if (watched !== null) terminal.say(`Health and metrics: ${watched.control.url}`);
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

async function needUsable(database: Database): Promise<void> {
  await needSchema(database);
  await needRights(database);
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
    const told = ADMIN_FAULTS[error.code ?? ""];
    throw told === undefined ? error : new Error(told({ host, port }));
  });
  return { control, metrics };
}

/** By the code of the system: what is told of these elsewhere names the options of the API. */
const ADMIN_FAULTS: Readonly<Record<string, ((at: Pick<ControlOptions, "host" | "port">) => string) | undefined>> = {
  EADDRINUSE: ({ port }) =>
    `The admin port ${port} is in use. Choose another with --admin-port, or stop what listens there.`,
  EACCES: ({ port }) => `No permission for the admin port ${port}. Choose another with --admin-port.`,
  EADDRNOTAVAIL: ({ host }) => `This machine has no such address (${host}). Give one of its own with --admin-host.`,
  ENOTFOUND: ({ host }) => `No address has that name (${host}). Give one of this machine's with --admin-host.`,
};

/** Milliseconds for what a worker does beside its drain: to send its counts, to start or to end. */
const WORKER_GRACE = 10_000;

/** Null where it is told to stop while its workers start. */
function openServer(
  process: Process,
  databases: Databases,
  metrics: Metrics | null,
  stopped: Promise<void>,
): Promise<Listening | null> {
  const { workers, host, port, drain } = process.settings;
  if (workers === 1) return openOwnSite(process, databases, metrics);
  const limit = drain * 1_000 + WORKER_GRACE;
  return openWorkers({ count: workers, host, port, limit, stopped, warn: process.log.warn });
}

async function firstApp(out: string): Promise<App | null> {
  const key = builtApps(out)[0];
  return key === undefined ? null : ((await openTree(out).findTree(key))?.app ?? null);
}
