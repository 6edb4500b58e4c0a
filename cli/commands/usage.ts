/** `precast usage`: what was counted, when, what cost most, and what could have been free. */
import { ConfigError } from "../../shared/config.ts";
import { DONE, defineCommand } from "../command.ts";
import { withDatabase } from "../database.ts";
import { csvOf, reportUsage, textOf } from "../usage/report.ts";
import { readUsage } from "../usage/rows.ts";

export const usageCommand = defineCommand({
  name: "usage",
  describes: "show the counted requests, and what could have been free",
  argument: null,
  settings: ["oneApp", "since", "until", "csv"],
  examples: ["precast usage", "precast usage --app atlas --since 2026-01-01 --until 2026-01-31 --csv"],
  run: async ({ terminal }, { oneApp, since, until, csv, ...settings }) => {
    if (csv && settings.json) throw new ConfigError(["--csv and --json exclude each other: give one of them."]);
    const range = { app: oneApp, since, until };
    const report = reportUsage(await withDatabase(settings, (database) => readUsage(database, range)), range);
    if (csv) terminal.print(csvOf(report));
    else terminal.result(textOf(report, terminal), report);
    return DONE;
  },
});
