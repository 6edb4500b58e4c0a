/**
 * `precast watch`: builds whenever content has changed, deploys that if there is a target, and says so. `serve --watch` builds
 * beside a server.
 */
import { openWakeup, pause, type Wakeup } from "../../shared/async.ts";
import type { CommonName, Settings } from "../../shared/config.ts";
import type { Database } from "../../shared/database/database.ts";
import { isReadOnly } from "../../shared/database/errors.ts";
import { formatCounted, formatFiles } from "../../shared/text.ts";
import { buildTree } from "../builder/build.ts";
import { summarizeApp } from "../builder/report.ts";
import { type Context, DONE, defineCommand } from "../command.ts";
import { databaseOptions, openDatabase, QUERY_TIMEOUT, withDatabase } from "../database.ts";
import { deployTree } from "../deploy/deploy.ts";
import { openTargetAndPurge, PUBLISHING_SETTINGS, UNCONDITIONAL } from "../deploy/target.ts";
import { describeFailure } from "../errors.ts";

const SETTINGS = ["apps", "maxSize", "target", ...PUBLISHING_SETTINGS] as const;

export const watchCommand = defineCommand({
  name: "watch",
  describes:
    "build, and build again whenever content changes; with --target, deploy that too (with --json, one value for each build)",
  argument: null,
  settings: SETTINGS,
  examples: [
    "precast watch",
    "precast watch --app atlas",
    "precast watch --json",
    "precast watch --target s3://content/api --purge cloudflare",
  ],
  run: async (context, settings) => {
    const { terminal, stopped } = context;
    const stop = new AbortController();
    void stopped().then(() => stop.abort());
    const deploy = openDeploy(context, settings, stop.signal);
    // The embedded database is shared, because otherwise no other process could change content. A `serve` may join too,
    // and its live queries need the time limit.
    const queryTimeout = settings.databaseUrl === null ? QUERY_TIMEOUT : null;
    await withDatabase(
      settings,
      async (database) => {
        terminal.say("Watching for content changes.");
        await watchTree(context, database, { settings, results: true, deploy }, stop.signal);
      },
      { share: true, queryTimeout },
    );
    return DONE;
  },
});

type Deploy = () => Promise<void>;

/**
 * Brings the tree to the target of --target, if something was built since that last succeeded; null without one. Throws
 * ConfigError for an invalid target.
 */
function openDeploy(
  { terminal, now }: Context,
  settings: Settings<(typeof SETTINGS)[number] | CommonName>,
  stop: AbortSignal,
): Deploy | null {
  if (settings.target === null) return null;
  const throwIfStopped = () => {
    if (stop.aborted) throw new Error("The deploy was stopped by a signal.");
  };
  const { target, purge } = openTargetAndPurge(settings.target, settings, now, throwIfStopped);
  return async () => {
    const { written, deleted, purges, conditional } = await deployTree(target, {
      ...settings,
      // Newer than what this process has deployed before, or what somebody else has: then it is refused.
      ...{ dryRun: false, force: false, allowOlder: false, maxDelete: Number.MAX_SAFE_INTEGER, throwIfStopped },
      purge: purge ?? undefined,
    });
    if (conditional === false) terminal.warn(`${target.store.name} ${UNCONDITIONAL}`);
    const purged = purges === null || purges === 0 ? "" : `, purged with ${formatCounted(purges, "request")}`;
    if (written + deleted > 0)
      terminal.say(`${target.store.name}: uploaded ${formatFiles(written)}, deleted ${deleted}${purged}`);
  };
}

// Keeps the tree up to date and reports each build.

type WatchOptions = {
  readonly settings: Settings<CommonName | "apps"> & Partial<Settings<"maxSize">>;
  /** Whether each build is a result of the command, to be printed with --json. */
  readonly results: boolean;
  /** Deploys what was built. */
  readonly deploy?: Deploy | null;
};

/**
 * Resolves when stopped, after the build that is running. Throws when the database refuses LISTEN, as a standby does.
 */
function watchTree(
  { terminal, now }: Context,
  database: Database,
  { settings, results, deploy = null }: WatchOptions,
  stop: AbortSignal,
): Promise<void> {
  let isDeployed = false;
  let warning: string | null = null;
  const warned = new Set<string>();

  /** Says what holds for each build only once. */
  function onWarning(text: string): void {
    if (!warned.has(text)) terminal.warn(text);
    warned.add(text);
  }

  async function build(): Promise<void> {
    const start = now();
    const reports = await buildTree(database, { ...settings, full: false, dryRun: false, now, onWarning });
    if (reports.some(({ written, deleted }) => written + deleted > 0)) isDeployed = false;
    if (deploy !== null && !isDeployed) await deploy();
    isDeployed = true;
    const seconds = (now().getTime() - start.getTime()) / 1_000;
    // Where the failure was reported: a server writes warnings to its log.
    if (warning !== null) terminal.warn(deploy === null ? "Building works again." : "Publishing works again.");
    warning = null;
    for (const report of reports)
      if (report.written + report.deleted > 0) terminal.say(summarizeApp(report, terminal, false));
    if (results) terminal.result("", { apps: reports, seconds });
  }

  /** Prints the same failure only once, however often the build is retried. */
  function onFailure(error: unknown): void {
    const text = describeFailure(error);
    const what = deploy === null ? "A build" : "A build or its deploy";
    if (text !== warning) terminal.warn(`${what} failed and is retried until it succeeds. ${text}`);
    warning = text;
  }

  return rebuildOnChange({ listen: database.listen, build, onFailure, stop });
}

// Builds whenever content has changed: a burst of changes causes one build, and a failed build is retried.

type RebuildOptions = {
  readonly listen: Database["listen"];
  readonly build: () => Promise<void>;
  readonly onFailure: (error: unknown) => void;
  /** Ends the rebuilding, after the build that is running. */
  readonly stop: AbortSignal;
};

/**
 * A burst is over after BURST_PAUSE milliseconds without a change. One that does not end is built after
 * MAX_BURST_PAUSES of them.
 */
const BURST_PAUSE = 50;
const MAX_BURST_PAUSES = 10;
const FIRST_WAIT = 200;
const LONGEST_WAIT = 5_000;

/** Resolves when it is stopped. Throws when the database refuses LISTEN, as a standby does. */
export async function rebuildOnChange({ listen, build, onFailure, stop }: RebuildOptions): Promise<void> {
  const wakeup = openWakeup();
  const stopListening = await listen(wakeup.signal);
  stop.addEventListener("abort", wakeup.signal);
  try {
    // The first build covers all changes from before the listening began.
    wakeup.signal();
    for (let failures = 0; await waitForBurst(wakeup, stop); ) {
      try {
        await build();
        failures = 0;
      } catch (error) {
        onFailure(error);
        wakeup.signal();
        await pause(Math.min(FIRST_WAIT * 2 ** failures++, LONGEST_WAIT), stop);
      }
    }
  } finally {
    stop.removeEventListener("abort", wakeup.signal);
    await stopListening();
  }
}

/**
 * Resolves with true when there is something to build, with false when stopped. Later changes are for the next build.
 */
async function waitForBurst(wakeup: Wakeup, stop: AbortSignal): Promise<boolean> {
  await wakeup.wait();
  for (let pauses = 0; wakeup.reset() && pauses < MAX_BURST_PAUSES; pauses++) await pause(BURST_PAUSE, stop);
  return !stop.aborted;
}

// Keeps the tree up to date in the process of a server.

/** Milliseconds between two checks whether a standby was promoted. */
const PROMOTION_CHECK_INTERVAL = 2_000;

/** Returns a function that stops it. A failure is printed as a warning and does not affect the server. */
export function startWatcher(
  context: Context,
  settings: Settings<CommonName>,
  database: Database,
): () => Promise<void> {
  const stop = new AbortController();
  const watch = withBuilder(settings, database, (builder) =>
    watchPrimary(context, builder, { ...settings, apps: null }, stop.signal),
  ).catch((error: unknown) => context.terminal.warn(`The tree is no longer rebuilt. ${describeFailure(error)}`));
  return () => {
    stop.abort();
    return watch;
  };
}

/** A standby refuses LISTEN: a server that was started on one begins to build once it is promoted. */
async function watchPrimary(
  context: Context,
  builder: Database,
  settings: WatchOptions["settings"],
  stop: AbortSignal,
): Promise<void> {
  for (let warned = false; !stop.aborted; warned = true) {
    try {
      return await watchTree(context, builder, { settings, results: false }, stop);
    } catch (error) {
      if (!isReadOnly(error)) throw error;
      if (!warned)
        context.terminal.warn(`The tree is not rebuilt until its database is a primary. ${describeFailure(error)}`);
      await pause(PROMOTION_CHECK_INTERVAL, stop);
    }
  }
}

/** Gives builds connections of their own, without a time limit. The embedded database has one connection for all. */
async function withBuilder(
  settings: Settings<CommonName>,
  database: Database,
  use: (builder: Database) => Promise<void>,
): Promise<void> {
  if (database.kind === "embedded") return use(database);
  const builder = await openDatabase(databaseOptions(settings));
  await use(builder).finally(builder.close);
}
