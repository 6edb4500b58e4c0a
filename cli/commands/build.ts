/** `precast build`: writes the tree. */
import { buildTree } from "../build/build.ts";
import type { Change } from "../build/stage/changes.ts";
import { DONE, defineCommand } from "../command.ts";
import { withDatabase } from "../database.ts";
import { summaryOf } from "../summary.ts";
import type { Terminal } from "../terminal.ts";

export const buildCommand = defineCommand({
  name: "build",
  describes: "write every free answer as a file of the tree; after the first time, what has changed",
  argument: null,
  settings: ["apps", "full", "dryRun"],
  examples: ["precast build", "precast build --app atlas --out dist/content", "precast build --dry-run"],
  run: async ({ terminal, now }, settings) => {
    const start = now();
    const progress = terminal.progress();
    const apps = await withDatabase(settings, (database) =>
      buildTree(database, {
        ...settings,
        now,
        ...(progress === null ? {} : { onProgress: progress.update }),
        ...(settings.dryRun ? { onChange: (change: Change) => sayChange(terminal, change) } : {}),
      }),
    ).finally(() => progress?.stop());
    const seconds = (now().getTime() - start.getTime()) / 1_000;
    if (apps.length === 0) terminal.say("No app in the database: import a bundle first (precast import <folder>).");
    for (const report of apps) terminal.say(summaryOf(report, terminal, settings.dryRun));
    if (settings.json) terminal.result("", { apps, seconds });
    return DONE;
  },
});

function sayChange({ say, colors }: Terminal, { change, app, file }: Change): void {
  const verb = change === "gone" ? colors.red("delete") : colors.green("write");
  say(`${verb} ${app} ${file.replace(/^[^/]+\/v1\//, "")}`);
}
