/** `precast usage`: shows the counted requests by day and shape, and which of them could have been free. */
import { type AppDefaults, readApps } from "../../shared/apps.ts";
import { ConfigError } from "../../shared/config.ts";
import type { Database } from "../../shared/database/database.ts";
import { UnknownAppError } from "../build/selection.ts";
import { DONE, defineCommand } from "../command.ts";
import { withDatabase } from "../database.ts";
import { csvOf, reportUsage, textOf } from "../usage/report.ts";
import { readUsage } from "../usage/rows.ts";

export const usageCommand = defineCommand({
  name: "usage",
  describes: "show the counted requests, and which of them could have been free",
  argument: null,
  settings: ["oneApp", "since", "until", "csv"],
  examples: ["precast usage", "precast usage --app atlas --since 2026-01-01 --until 2026-01-31 --csv"],
  run: async ({ terminal }, { oneApp, since, until, csv, ...settings }) => {
    if (csv && settings.json) throw new ConfigError(["--csv and --json cannot be combined: specify only one of them."]);
    if (since !== null && until !== null && since > until)
      throw new ConfigError([
        `--since ${since} is later than --until ${until}: specify an earlier --since or a later --until.`,
      ]);
    const range = { app: oneApp, since, until };
    const rows = await withDatabase(settings, async (database) => {
      const rows = await readUsage(database, range);
      if (rows.length === 0 && oneApp !== null) await refuseUnknownApp(database, settings, oneApp);
      return rows;
    });
    const report = reportUsage(rows, range);
    if (csv) terminal.print(csvOf(report));
    else terminal.result(textOf(report, terminal), report);
    return DONE;
  },
});

/** Throws UnknownAppError for a key that no app has and no count names. The counts of a deleted app remain. */
async function refuseUnknownApp(database: Database, defaults: AppDefaults, key: string): Promise<void> {
  const known = (await readApps(database, defaults)).map((app) => app.key);
  if (known.includes(key)) return;
  const ever = await readUsage(database, { app: key, since: null, until: null });
  if (ever.length === 0) throw new UnknownAppError([key], known);
}
