/** `precast import`: imports a bundle into the database, all or nothing. */
import { DONE, defineCommand } from "../command.ts";
import { withDatabase } from "../database.ts";
import { importBundle } from "../import/import.ts";
import type { Changes, MissingTarget } from "../import/report.ts";

export const importCommand = defineCommand({
  name: "import",
  describes: "import a content bundle into the database, all of it or nothing",
  argument: "<folder>",
  settings: ["prune", "dryRun"],
  examples: ["precast import export/blog", "precast import export/blog --prune --dry-run"],
  run: async ({ terminal }, settings, folder) => {
    const progress = terminal.progress("entries");
    const options = { ...settings, ...(progress === null ? {} : { onProgress: progress.update }) };
    const report = await withDatabase(settings, (database) => importBundle(database, folder, options)).finally(() =>
      progress?.stop(),
    );
    const { app, types, fields, entries, missingTargets } = report;
    const changes = `entries ${changesText(entries)}; types ${changesText(types)}; fields ${changesText(fields)}`;
    terminal.say(`${terminal.colors.bold(app)}: ${settings.dryRun ? "dry run, nothing imported: " : ""}${changes}`);
    for (const missing of missingTargets) terminal.warn(missingText(missing));
    if (settings.json) {
      const changes = { types, fields, entries };
      terminal.result("", { app, dry_run: settings.dryRun, ...changes, missing_targets: missingTargets });
    }
    return DONE;
  },
});

function missingText({ type, field, target }: MissingTarget): string {
  return `content_types/${type}.json: the target of "${field}" is "${target}", which is no content type of this app. Until it is one, populate shows nothing of it.`;
}

function changesText({ created, updated, unchanged, deleted }: Changes): string {
  return `${created} created, ${updated} updated, ${unchanged} unchanged, ${deleted} deleted`;
}
