/** `precast build`: writes the tree. */

import { type AppReport, buildTree } from "../build/build.ts";
import { DONE, defineCommand } from "../command.ts";
import { withDatabase } from "../database.ts";
import { formatBytes, formatSeconds } from "../format.ts";
import type { Terminal } from "../terminal.ts";

export const buildCommand = defineCommand({
  name: "build",
  describes: "write every free answer as a file of the tree",
  argument: null,
  settings: ["apps", "full", "dryRun"],
  examples: ["precast build", "precast build --app atlas --out dist/content", "precast build --dry-run"],
  run: async ({ terminal, now }, settings) => {
    const start = now();
    const progress = terminal.progress();
    const reports = await withDatabase(settings, (database) =>
      buildTree(database, { ...settings, now, ...(progress === null ? {} : { onProgress: progress.update }) }),
    ).finally(() => progress?.stop());
    const seconds = (now().getTime() - start.getTime()) / 1_000;
    summarise(terminal, reports, seconds, settings.dryRun);
    const apps = reports.map(({ changes: _, ...report }) => report);
    if (settings.json) terminal.result("", { apps, seconds });
    return DONE;
  },
});

function summarise(terminal: Terminal, reports: readonly AppReport[], seconds: number, dryRun: boolean): void {
  if (dryRun) for (const { key, changes } of reports) listChanges(terminal, key, changes);
  if (reports.length === 0) terminal.say("No app in the database: import a bundle first (precast import <folder>).");
  for (const { key, written, unchanged, deleted, bytes, seconds: own } of reports) {
    const verb = dryRun ? "would write" : "wrote";
    terminal.say(
      `${terminal.colors.bold(key)}: ${verb} ${written} files, ${unchanged} unchanged, ${deleted} deleted, ` +
        `${formatBytes(bytes)} in ${formatSeconds(own)}`,
    );
  }
  terminal.say(`Every answer computed anew, in ${formatSeconds(seconds)}.`);
}

function listChanges(terminal: Terminal, key: string, { written, deleted }: AppReport["changes"]): void {
  for (const path of written) terminal.say(`${terminal.colors.green("write")} ${key} ${path}`);
  for (const path of deleted) terminal.say(`${terminal.colors.red("delete")} ${key} ${path}`);
}
