/** Keeps the tree up to date in the process of a server. */
import type { CommonName, Settings } from "../../shared/config.ts";
import type { Database } from "../../shared/database/database.ts";
import { isReadOnly } from "../../shared/database/fault.ts";
import { openDatabase } from "../../shared/database/open.ts";
import { pause } from "../../shared/pause.ts";
import type { Context } from "../command.ts";
import { databaseOptions } from "../database.ts";
import { describeFailure } from "../failure.ts";
import { type WatchOptions, watchTree } from "./watch.ts";

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
