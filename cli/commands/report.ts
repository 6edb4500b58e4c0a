/** `precast report`: writes usage and trees into one HTML file, which mail and CI can keep. */
import { outputFileSync } from "fs-extra/esm";
import { readApps } from "../../shared/apps.ts";
import { formatBytes } from "../../shared/text.ts";
import { chooseApps } from "../../shared/tree.ts";
import { DONE, defineCommand } from "../command.ts";
import { noAppText, withDatabase } from "../database.ts";
import { writeReport } from "../studio/report.ts";

export const reportCommand = defineCommand({
  name: "report",
  describes: "write usage, a forecast of the month and what the tree consists of into one HTML file",
  argument: null,
  settings: ["reportFile", "oneApp", "since", "until", "monthlyPlan"],
  examples: ["precast report --html report.html", "precast report --html report.html --app atlas --plan 100000"],
  run: async ({ terminal, now }, settings) => {
    const { reportFile: file, oneApp } = settings;
    const { apps, html } = await withDatabase(settings, async (database) => {
      const apps = chooseApps(await readApps(database, settings), oneApp === null ? null : [oneApp]);
      if (apps.length === 0) throw new Error(noAppText(settings));
      return { apps, html: await writeReport({ database, settings, now }, apps, settings) };
    });
    outputFileSync(file, html);
    const report = { file, bytes: Buffer.byteLength(html), apps: apps.map(({ key }) => key) };
    terminal.result(`Wrote ${file}, ${formatBytes(report.bytes)}: ${report.apps.join(", ")}`, report);
    return DONE;
  },
});
