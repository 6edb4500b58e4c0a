/** `precast watch`: builds whenever content has changed. */
import { DONE, defineCommand } from "../command.ts";
import { QUERY_TIMEOUT, withDatabase } from "../database.ts";
import { watchTree } from "../watch.ts";

export const watchCommand = defineCommand({
  name: "watch",
  describes: "build, and build again whenever content changes (with --json, one value for each build)",
  argument: null,
  settings: ["apps"],
  examples: ["precast watch", "precast watch --app atlas", "precast watch --json"],
  run: async (context, settings) => {
    const { terminal, stopped } = context;
    const stop = new AbortController();
    void stopped().then(() => stop.abort());
    // The embedded database is shared, because otherwise no other process could change content. A `serve` may join too,
    // and its live queries need the time limit.
    const queryTimeout = settings.databaseUrl === null ? QUERY_TIMEOUT : null;
    await withDatabase(
      settings,
      async (database) => {
        terminal.say("Watching for content changes.");
        await watchTree(context, database, { settings, results: true }, stop.signal);
      },
      { share: true, queryTimeout },
    );
    return DONE;
  },
});
