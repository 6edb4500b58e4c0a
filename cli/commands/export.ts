/** `precast export`: writes the content of an app as a bundle, which another database can import. */
import { DONE, defineCommand } from "../command.ts";
import { withDatabase } from "../database.ts";
import { exportApp } from "../export/bundle.ts";

export const exportCommand = defineCommand({
  name: "export",
  describes: "write the content of an app as a bundle, with its drafts and media",
  argument: "<folder>",
  settings: ["oneApp"],
  examples: ["precast export backup --app atlas"],
  run: async ({ terminal }, settings, folder) => {
    const progress = terminal.progress("entries");
    const observed = progress === null ? {} : { onProgress: progress.update };
    const options = { appKey: settings.oneApp, types: null, as: null, dataDir: settings.dataDir, ...observed };
    const exported = await withDatabase(settings, (database) =>
      database.transaction("read", (session) => exportApp(session, folder, options)),
    ).finally(() => progress?.stop());
    const total = [...exported.entries.values()].reduce((sum, count) => sum + count, 0);
    const told = `${total} entries of ${exported.entries.size} types, ${exported.media} media`;
    terminal.say(`${terminal.colors.bold(exported.app.key)}: ${told} written into ${folder}.`);
    if (settings.json) {
      const counts = Object.fromEntries(exported.entries);
      terminal.result("", { app: exported.app.key, folder, entries: counts, media: exported.media });
    }
    return DONE;
  },
});
