/** `precast work`: publishes apps as they change, beside any number of other processes that do the same. */
import { join } from "node:path";
import PACKAGE from "../../package.json" with { type: "json" };
import { repeat } from "../../shared/async.ts";
import { type CommonName, ConfigError, type Settings } from "../../shared/config.ts";
import type { Database } from "../../shared/database/database.ts";
import { type Lock, LockedError, takeLock } from "../../shared/lock.ts";
import { formatBytes, formatFiles, formatSeconds } from "../../shared/text.ts";
import { readSource } from "../builder/delta.ts";
import { type Context, DONE, defineCommand } from "../command.ts";
import { withDatabase } from "../database.ts";
import { adoptLayout, readLayout } from "../deploy/layout.ts";
import type { Purge } from "../deploy/purge.ts";
import { openTargetAndPurge, PUBLISHING_SETTINGS, type Target } from "../deploy/target.ts";
import { describeFailure } from "../errors.ts";
import { type Monitor, openMonitor } from "../work/monitor.ts";
import {
  isLargePublication,
  openKept,
  type PublicationOptions,
  type Published,
  publishApp,
} from "../work/publication.ts";
import { findTarget, type Registration, registerTarget } from "../work/queue.ts";
import { countConnections, work } from "../work/worker.ts";

const SETTINGS = [
  "target",
  "appsPerProcess",
  "largeApps",
  "finish",
  "maxSize",
  ...PUBLISHING_SETTINGS,
  "adminPort",
  "adminHost",
] as const;
type WorkSettings = Settings<(typeof SETTINGS)[number] | CommonName>;

export const workCommand = defineCommand({
  name: "work",
  describes: "publish apps as they change: build and deploy each, beside any number of processes that do the same",
  argument: null,
  settings: SETTINGS,
  examples: [
    "precast work --target s3://content/api --region eu-central-1",
    "precast work --target s3://content/api --purge cloudflare --admin-port 9090",
    "precast work --target file:///srv/content --apps-per-process 8",
  ],
  run: async (context, settings) => {
    const { databaseUrl, target: place } = settings;
    if (place === null) throw new ConfigError(["--target is missing: specify s3://bucket/prefix or file:///folder."]);
    if (databaseUrl === null)
      throw new ConfigError([
        "Workers share a PostgreSQL, whose address is missing: specify --database-url (DATABASE_URL). With the embedded database, `precast watch --target` does their work alone.",
      ]);
    const stopping = openStopping(context, settings.finish);
    const open = () => openTargetAndPurge(place, settings, context.now, stopping.throwIfLate);
    const lanes = { usual: open(), large: open() };
    const connections = settings.appsPerProcess + settings.largeApps + 2;
    await withDatabase(
      settings,
      async (database) => {
        const { folder, release } = takeFolder(join(settings.dataDir, "work"));
        const parts = { database, databaseUrl, lanes, folder };
        await runWorker(context, settings, parts, stopping).finally(release);
      },
      { connections },
    );
    return DONE;
  },
});

type Parts = {
  readonly database: Database;
  readonly databaseUrl: string;
  /** Each lane has requests of its own to the store, so that a large upload holds up nobody. */
  readonly lanes: Readonly<Record<"usual" | "large", { readonly target: Target; readonly purge: Purge | null }>>;
  /** What this process keeps of trees. */
  readonly folder: string;
};

async function runWorker(
  { terminal, now }: Context,
  settings: WorkSettings,
  { database, databaseUrl, lanes, folder }: Parts,
  stopping: Stopping,
): Promise<void> {
  const { openPlainPool } = await import("../../shared/database/postgres/pool.ts");
  const { appsPerProcess: apps, largeApps, json } = settings;
  const pool = openPlainPool(databaseUrl, countConnections({ apps, largeApps }), "precast work");
  const { target } = lanes.usual;
  const optionsOf = (isLarge: boolean): PublicationOptions => {
    const { target, purge } = isLarge ? lanes.large : lanes.usual;
    const common = { database, target, folder, now, onWarning: terminal.warn, throwIfStopped: stopping.throwIfLate };
    return { ...settings, ...common, purge: purge ?? undefined };
  };
  try {
    await adoptLayout(target.store, await readLayout(target.store, false), false, target.takeLock);
    const register = async () => {
      const common = { database, pool, target: target.store.name, say: terminal.say, stop: stopping.signal };
      return registerTarget({ ...common, settings: await describeSettings(database, settings) });
    };
    const registration = await register();
    if (registration === null) return;
    const monitor = await openMonitor(settings, database, terminal.warn);
    const keep = openKept(folder);
    const registered = watchRegistration(registration, { database, settings, register, stopping });
    terminal.say(`Publishing to ${target.store.name}, ${apps} apps at a time.`);
    if (monitor.url !== null) terminal.say(`Health and metrics: ${monitor.url}`);
    try {
      await work({
        ...{ pool, registration, apps, largeApps, warn: terminal.warn, stop: stopping.signal },
        isLarge: (app) => isLargePublication(app, optionsOf(false)),
        publish: async (app, isLarge) => {
          await registered.check();
          const publish = () => keep(app, () => publishApp(app, optionsOf(isLarge)));
          const done = await observe(app, publish, now, monitor, terminal.warn);
          if (json) terminal.result("", done);
          else if (done.written + done.deleted > 0) terminal.say(describePublished(done));
        },
      });
    } finally {
      await registered.close();
      await monitor.close();
    }
    const failure = stopping.failure();
    if (failure !== null) throw failure;
  } finally {
    await pool.end();
  }
}

type Timed = Published & { readonly seconds: number };

async function observe(
  app: string,
  publish: () => Promise<Published>,
  now: () => Date,
  monitor: Monitor,
  warn: (sentence: string) => void,
): Promise<Timed> {
  const start = now().getTime();
  const time = () => (now().getTime() - start) / 1_000;
  try {
    const done = { ...(await publish()), seconds: time() };
    monitor.published("done", done.seconds);
    return done;
  } catch (error) {
    monitor.published("failed", time());
    warn(`${app} was not published, and is tried again. ${describeFailure(error)}`);
    throw error;
  }
}

function describePublished({ app, mode, reason, written, deleted, bytes, seconds }: Timed): string {
  const why = reason === null ? mode : `${mode}: ${reason}`;
  return `${app}: published ${formatFiles(written)}, ${formatBytes(bytes)}, deleted ${deleted}, in ${formatSeconds(seconds)} (${why})`;
}

/** All that the files of a tree depend on beside the content. Two workers with different ones would undo each other's work. */
async function describeSettings(database: Database, settings: WorkSettings): Promise<string> {
  const { mediaBaseUrl, cacheControl, cdnCacheControl } = settings;
  const { source } = await database.transaction("read", (session) => readSource(session, []));
  return JSON.stringify({ version: PACKAGE.version, source, mediaBaseUrl, cacheControl, cdnCacheControl });
}

// Watches that this process still builds what the others do.

const CHECK_INTERVAL = 5_000;

type Watched = {
  readonly database: Database;
  readonly settings: WorkSettings;
  readonly register: () => Promise<Registration | null>;
  readonly stopping: Stopping;
};

/**
 * After a failover all apps are built again, because commits may be lost that were built. `check` throws once others build with
 * something else: then this process must publish nothing more.
 */
function watchRegistration(first: Registration, { database, settings, register, stopping }: Watched) {
  let own = first;
  const check = async () => {
    const registered = await findTarget(database, settings.target ?? "");
    if (registered?.id === own.id && registered.settings === own.settings) return;
    throw stopping.fail(
      registered?.id === own.id
        ? "Another worker was started with another version of Precast or other settings"
        : "The target was dropped from the queue",
    );
  };
  const look = async () => {
    if ((await describeSettings(database, settings)) !== own.settings) own = (await register()) ?? own;
    await check();
  };
  // While the database is away, the queue says so.
  const close = repeat(CHECK_INTERVAL, look, () => {});
  return { check, close };
}

type Stopping = ReturnType<typeof openStopping>;

/** `throwIfLate` throws when publications have not ended in time after the process was told to stop. */
function openStopping({ stopped, now, terminal }: Context, finish: number) {
  const stop = new AbortController();
  let since: number | null = null;
  let failure: Error | null = null;
  const begin = () => {
    since ??= now().getTime();
    stop.abort();
  };
  void stopped().then(() => {
    terminal.say("Stopping: finishing what is being published.");
    begin();
  });
  return {
    signal: stop.signal,
    failure: () => failure,
    /** Stops the process, and returns the error with which it ends. */
    fail: (why: string) => {
      failure ??= new Error(`${why}: this worker has ended. Start it again with the settings of the others.`);
      begin();
      return failure;
    },
    throwIfLate: () => {
      if (since !== null && now().getTime() - since > finish * 1_000)
        throw new Error("The worker was stopped before the publication was done; another one takes it over.");
    },
  };
}

/** Each process has a folder of its own, so that no other one removes what it reads; one that ended leaves its folder. */
function takeFolder(base: string): { readonly folder: string; readonly release: Lock["release"] } {
  for (let number = 1; ; number++) {
    const folder = join(base, String(number));
    try {
      const { release } = takeLock(join(base, `${number}.lock`));
      return { folder, release };
    } catch (error) {
      if (!(error instanceof LockedError)) throw error;
    }
  }
}
