/** `precast serve`: answers from the tree and the database. */
import { join } from "node:path";
import { openAccessLog } from "../../server/access-line.ts";
import { createApp } from "../../server/app.ts";
import type { Control } from "../../server/control.ts";
import { openHits } from "../../server/hits.ts";
import { openLedger } from "../../server/ledger.ts";
import { type Live, openLive } from "../../server/live.ts";
import { type Log, openLog } from "../../server/log.ts";
import { observeBy } from "../../server/observation.ts";
import { listen } from "../../server/serve.ts";
import { openTree } from "../../server/tree.ts";
import type { CommonName, LogLevel, Settings } from "../../shared/config.ts";
import type { Database } from "../../shared/database/database.ts";
import { DatabaseFault } from "../../shared/database/fault.ts";
import { openDatabase } from "../../shared/database/open.ts";
import { builtApps } from "../build/selection.ts";
import { type Context, DONE, defineCommand } from "../command.ts";
import { databaseOptions, needSchema, QUERY_TIMEOUT } from "../database.ts";
import { describeFailure } from "../failure.ts";
import { machineId } from "../machine.ts";
import { requestsToTry } from "../tour.ts";
import { watchTree } from "../watch.ts";

const SETTINGS = [
  "host",
  "port",
  "watch",
  "connections",
  "queue",
  "memoryCache",
  "ledgerSync",
  "cacheControl",
  "cdnCacheControl",
  "adminPort",
  "adminHost",
  "logLevel",
] as const;
const MEBIBYTE = 1 << 20;
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
  ],
  run: async (context, settings) => {
    // One more than live queries may take, so that the ledger never waits for one of them.
    const limits = { connections: settings.connections + 1, queryTimeout: QUERY_TIMEOUT, share: true };
    const database = await openDatabase(databaseOptions(settings, limits));
    try {
      await serve(context, settings, database);
    } finally {
      await database.close();
    }
    return DONE;
  },
});

async function serve(context: Context, settings: ServeSettings, database: Database): Promise<void> {
  const { terminal, now, stopped } = context;
  const stop = stopped();
  const log = await openLog({ level: levelOf(settings), descriptor: STANDARD_ERROR, ...terminal.log });
  const onError = log.error;
  // The tree answers without the database: one that is away is no reason not to start.
  await needSchema(database).catch((error: unknown) => {
    if (!(error instanceof DatabaseFault)) throw error;
    log.warn(
      "The database does not answer. Free requests are served from the tree, the others are 503 until it is back.",
    );
  });
  const folder = join(settings.dataDir, "ledger");
  const durability = settings.ledgerSync ? "power" : "process";
  const ledger = await openLedger(database, { folder, machine: machineId(), durability, now, onError });
  const live = openLive(database, { ...settings, queryTimeout: QUERY_TIMEOUT });
  const sources = { ...openTree(settings.out), ...hideKeys(live, log), onError };
  const hits = openHits(settings.memoryCache * MEBIBYTE);
  const policy = { browsers: settings.cacheControl, cdns: settings.cdnCacheControl };
  let control: Control | null = null;
  try {
    control = await startControl(context, settings, database, log);
    const observe = observeBy(control?.observe ?? null, openAccessLog(log));
    const app = createApp({ sources, hits, ledger, policy, observe });
    const listening = await listen(app, settings.host, settings.port);
    const told = { url: listening.url, ...(control === null ? {} : { admin: control.url }) };
    terminal.result(`${terminal.colors.green("Precast serves")} ${listening.url}`, told);
    if (control !== null) terminal.say(`Health and metrics: ${control.url}`);
    const tried = requestsToTry(listening.url, await firstApp(settings.out, sources.findTree));
    if (tried.length > 0) terminal.say(`Try:\n${tried.map((request) => `  ${request}`).join("\n")}`);
    const endWatch = settings.watch ? startWatch(context, settings, database, log) : async () => {};
    await stop;
    control?.drain();
    terminal.say("Stopping: open requests are finished.");
    await Promise.all([endWatch(), listening.stop()]);
  } finally {
    live.close();
    await ledger.close();
    await control?.close();
    await log.close();
  }
}

/** Loaded where it is asked for. It listens before the API does, so that health can be asked from the first moment on. */
async function startControl(
  { now }: Context,
  { adminHost: host, adminPort: port, out }: ServeSettings,
  database: Database,
  log: Log,
): Promise<Control | null> {
  if (port === null) return null;
  const { openControl } = await import("../../server/control.ts");
  const gauges = {};
  const options = { host, port, out, database, now, gauges, droppedLines: log.dropped, onError: log.error };
  return openControl(options).catch((error: NodeJS.ErrnoException) => {
    throw error.code === "EADDRINUSE" ? new Error(ADMIN_PORT_IN_USE) : error;
  });
}

const ADMIN_PORT_IN_USE = "The admin port is in use. Choose another with --admin-port, or stop what listens there.";
/** The file number. */
const STANDARD_ERROR = 2;

function levelOf({ logLevel, quiet }: ServeSettings): LogLevel {
  return logLevel ?? (quiet ? "warn" : "info");
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

/** Gives what ends it. A watch that fails is told and leaves the server alone. */
function startWatch(context: Context, settings: ServeSettings, database: Database, log: Log): () => Promise<void> {
  const stop = new AbortController();
  const logging = { ...context, terminal: { ...context.terminal, warn: log.warn } };
  const watch = withBuilder(settings, database, (builder) =>
    watchTree(logging, builder, { settings: { ...settings, apps: null }, results: false }, stop.signal),
  ).catch((error: unknown) => log.error(`The tree is built no more. ${describeFailure(error)}`));
  return () => {
    stop.abort();
    return watch;
  };
}

/** Builds have no time limit and take no connection from live queries. The embedded database has one for all. */
async function withBuilder(
  settings: ServeSettings,
  database: Database,
  use: (builder: Database) => Promise<void>,
): Promise<void> {
  if (database.kind === "embedded") return use(database);
  const builder = await openDatabase(databaseOptions(settings));
  await use(builder).finally(builder.close);
}

async function firstApp(out: string, findTree: ReturnType<typeof openTree>["findTree"]) {
  const key = builtApps(out)[0];
  return key === undefined ? null : ((await findTree(key))?.app ?? null);
}
