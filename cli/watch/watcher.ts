/** Keeps the tree up to date beside a server, in the same process. */
import type { CommonName, Settings } from "../../shared/config.ts";
import type { Database } from "../../shared/database/database.ts";
import { openDatabase } from "../../shared/database/open.ts";
import type { Context } from "../command.ts";
import { databaseOptions } from "../database.ts";
import { describeFailure } from "../failure.ts";
import { watchTree } from "./watch.ts";

/** Gives what ends it. A watch that fails is told and leaves the server alone. */
export function startWatcher(
  context: Context,
  settings: Settings<CommonName>,
  database: Database,
): () => Promise<void> {
  const stop = new AbortController();
  const watch = withBuilder(settings, database, (builder) =>
    watchTree(context, builder, { settings: { ...settings, apps: null }, results: false }, stop.signal),
  ).catch((error: unknown) => context.terminal.warn(`The tree is built no more. ${describeFailure(error)}`));
  return () => {
    stop.abort();
    return watch;
  };
}

/** Builds have no time limit and take no connection from live queries. The embedded database has one for all. */
async function withBuilder(
  settings: Settings<CommonName>,
  database: Database,
  use: (builder: Database) => Promise<void>,
): Promise<void> {
  if (database.kind === "embedded") return use(database);
  const builder = await openDatabase(databaseOptions(settings));
  await use(builder).finally(builder.close);
}
