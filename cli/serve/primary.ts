/** The first process of a server: answers requests or manages the workers that do, and prints the server's address. */
import type { Admin } from "../../server/admin.ts";
import { openWorkers } from "../../server/cluster.ts";
import type { Listening } from "../../server/http/listen.ts";
import { findLedgerFolder } from "../../server/ledger/owner.ts";
import type { MediaServer } from "../../server/media.ts";
import type { Metrics } from "../../server/metrics.ts";
import { readHealth } from "../../server/replica-status.ts";
import { assertCopies } from "../../server/replicas.ts";
import { assertRights } from "../../server/rights.ts";
import { openTree } from "../../server/tree.ts";
import { type App, type ContentType, findField, searchableFields } from "../../shared/api/catalog.ts";
import type { Database } from "../../shared/database/database.ts";
import { DatabaseFault, describeOutage } from "../../shared/database/errors.ts";
import { builtAppKeys } from "../../shared/tree.ts";
import { isPartialTree } from "../builder/remote.ts";
import { DONE } from "../command.ts";
import { databaseName, ensureSchema } from "../database.ts";
import { explainPort, isFileLimit } from "../errors.ts";
import { describeMediaPort, openMediaPort } from "./media-port.ts";
import {
  type Databases,
  openOwnMetrics,
  openOwnSite,
  openOwnTreeStore,
  type Process,
  type ServeSettings,
  withDatabases,
} from "./process.ts";

export async function serveAsPrimary(process: Process): Promise<number> {
  const { settings } = process;
  // Workers use the embedded database through this process, but open their own connections to PostgreSQL.
  const own = settings.workers === 1 ? settings : { ...settings, connections: 1 };
  await withDatabases(own, (databases) => serve(process, databases));
  return DONE;
}

const BY_REPLICAS = "all others from its replicas, and counts wait on disk";
const REFUSED = "and all others get 503";

async function serve(process: Process, databases: Databases): Promise<void> {
  const { database, replicas } = databases;
  const { context, settings, log } = process;
  const { terminal, stopped } = context;
  const stop = stopped();
  // The tree can be served without the database, so the server starts even if the database is unavailable.
  await needUsable(database).catch((error: unknown) => {
    if (!(error instanceof DatabaseFault) || isFileLimit(error)) throw error;
    const others = replicas.all.some(({ status }) => status().kind === "used") ? BY_REPLICAS : REFUSED;
    log.warn(
      `${describeOutage(error)}. Free requests are served from the tree, ${others} until it is available again.`,
    );
  });
  assertCopies(replicas.all);
  replicas.report(log.warn);
  await checkTree(process);
  const app = settings.tree === null ? await firstApp(settings.out) : null;
  const media = await openMediaPort(settings, log.error);
  const monitoring = await openMonitoring(process, databases, media).catch(async (error: unknown) => {
    await media?.close();
    throw error;
  });
  try {
    const server = await openServer(process, databases, monitoring?.metrics ?? null, stop);
    if (server === null) return;
    let endWatch = async () => {};
    try {
      const admin = monitoring === null ? {} : { admin: monitoring.admin.url };
      const addresses = { url: server.url, ...admin, ...(media === null ? {} : { media: media.url }) };
      terminal.result(`${terminal.colors.green("Precast serves")} ${server.url}`, addresses);
      if (monitoring !== null) terminal.say(`Health and metrics: ${monitoring.admin.url}`);
      if (media !== null) terminal.say(describeMediaPort(media, settings));
      terminal.say(app === null ? treelessText(settings) : tourText(server.url, app));
      if (settings.watch) endWatch = (await loadWatcher())(context, settings, database);
      await stop;
      monitoring?.admin.drain();
      terminal.say("Stopping: finishing open requests.");
    } finally {
      await Promise.all([endWatch(), server.stop()]);
    }
  } finally {
    await Promise.all([monitoring?.admin.close(), media?.close()]);
  }
}

async function checkTree(process: Process): Promise<void> {
  const store = await openOwnTreeStore(process);
  if (store !== null) await (await import("./tree-store.ts")).checkTreeStore(store, process.log.warn);
}

async function needUsable(database: Database): Promise<void> {
  await ensureSchema(database);
  await assertRights(database);
}

function treelessText(settings: ServeSettings): string {
  const { out, tree } = settings;
  if (tree !== null) return `Free requests are answered from the tree at ${tree}.`;
  const live = `all requests are answered live, from ${databaseName(settings)}.`;
  if (!isPartialTree(out)) return `No tree in ${out}: ${live}`;
  return `Some files of the tree in ${out} exist only where it was deployed: ${live} \`precast build --full\` completes it.`;
}

function tourText(url: string, app: App): string {
  return ["Try:", ...requestsToTry(url, app).map((request) => `  ${request}`)].join("\n");
}

/** Imported on demand, because only `--watch` needs the builder. */
async function loadWatcher() {
  return (await import("../commands/watch.ts")).startWatcher;
}

type Monitoring = { readonly admin: Admin; readonly metrics: Metrics };

/**
 * Opens the admin port, whose code is imported only when one is set; null when none is. It listens before the API does,
 * so that health checks are answered from the start.
 */
async function openMonitoring(
  process: Process,
  databases: Databases,
  media: MediaServer | null,
): Promise<Monitoring | null> {
  const { database, replicas } = databases;
  const { settings, log } = process;
  const { adminHost: host, adminPort: port, tree, dataDir, workers, studio } = settings;
  if (port === null) return null;
  const metrics = await openOwnMetrics(process, databases);
  const { openAdmin } = await import("../../server/admin.ts");
  const replicaHealth = () => replicas.all.map(({ status }) => readHealth(status()));
  const options = {
    out: tree === null ? settings.out : null,
    ledgerFolder: findLedgerFolder(dataDir),
    database,
    replicas: replicaHealth,
    metrics: workers === 1 ? metrics.text : metrics.sumOfWorkers,
    studio: studio ? await openStudio(process, database, media) : undefined,
    onError: log.error,
  };
  const admin = await explainPort("admin", { host, port }, (at) => openAdmin({ ...at, ...options }));
  return { admin, metrics };
}

/** Its code is imported only when it is asked for. */
async function openStudio({ context, settings, log }: Process, database: Database, media: MediaServer | null) {
  const studio = await import("../studio/studio.ts");
  const hosts = [settings.adminHost];
  return studio.openStudio({
    database,
    settings,
    now: context.now,
    hosts,
    media: media?.url ?? null,
    onError: log.error,
  });
}

/** Milliseconds that a worker may take beyond its drain time: to start, to send its counts and to exit. */
const WORKER_GRACE = 10_000;

/** Resolves with null when the server is told to stop while its workers start. */
function openServer(
  process: Process,
  databases: Databases,
  metrics: Metrics | null,
  stopped: Promise<void>,
): Promise<Listening | null> {
  const { workers, host, port, drain } = process.settings;
  if (workers === 1) return openOwnSite(process, databases, metrics);
  const stopTimeout = drain * 1_000 + WORKER_GRACE;
  return openWorkers({ count: workers, host, port, stopTimeout, stopped, warn: process.log.warn });
}

async function firstApp(out: string): Promise<App | null> {
  const key = builtAppKeys(out)[0];
  return key === undefined ? null : ((await openTree(out).findTree(key))?.app ?? null);
}

// Makes up three requests that show a newcomer an app: the catalog, a sort or a page, and a search or a counted list.

/** curl commands. */
export function requestsToTry(url: string, app: App): string[] {
  const type = app.types.find((candidate) => searchableFields(candidate).length > 0) ?? app.types[0];
  const paths = type === undefined ? ["_schemas"] : ["_schemas", pagePath(type), searchPath(type)];
  return paths.map((path) => `curl -H 'X-App-Key: ${app.key}' '${url}/api/v1/${path}'`);
}

function pagePath(type: ContentType): string {
  const sortable = type.sortable_fields.find((name) => findField(type, name) !== undefined);
  return sortable === undefined ? type.slug : `${type.slug}?sort=-${sortable}`;
}

function searchPath(type: ContentType): string {
  return searchableFields(type).length === 0 ? `${type.slug}?per_page=3` : `${type.slug}/search?q=an&per_page=3`;
}
