/** `precast verify`: compares the tree with live answers. */
import { readApps } from "../../shared/apps.ts";
import { builtApps, chooseApps } from "../build/selection.ts";
import { DIFFERENT, DONE, defineCommand } from "../command.ts";
import { withDatabase } from "../database.ts";
import { type Verified, verifyApp, verifyGone } from "../verify.ts";

const MAX_LISTED = 100;

export const verifyCommand = defineCommand({
  name: "verify",
  describes: "compute the tree's answers live and compare them byte for byte; exit 2 when something differs",
  argument: null,
  settings: ["apps", "sample"],
  examples: ["precast verify", "precast verify --app atlas --sample 500"],
  run: async ({ terminal }, settings) => {
    const progress = terminal.progress();
    const onProgress = progress === null ? {} : { onProgress: progress.update };
    const verified = await withDatabase(settings, (database) =>
      database.transaction("read", async (session) => {
        const all = await readApps(session, settings);
        const reports: Verified[] = [];
        for (const app of chooseApps(all, settings.apps)) {
          reports.push(await verifyApp(session, app, { ...settings, ...onProgress }));
        }
        const gone = builtApps(settings.out).filter((key) => !all.some((app) => app.key === key));
        return settings.apps === null ? [...reports, ...gone.map((key) => verifyGone(settings.out, key))] : reports;
      }),
    ).finally(() => progress?.stop());
    const differences = verified.flatMap((report) => report.differences);
    const summary = verified.map(
      ({ key, files, computed, differences: own }) =>
        `${key}: ${files} files, ${computed} computed live, ${own.length} differences`,
    );
    const listed = differences.slice(0, MAX_LISTED).map(({ app, problem, file }) => `${app} ${file}: ${problem}`);
    const rest = differences.length > MAX_LISTED ? [`… and ${differences.length - MAX_LISTED} more`] : [];
    const advice = differences.length > 0 ? ["Run `precast build --full` to put the tree right."] : [];
    terminal.result([...listed, ...rest, ...summary, ...advice].join("\n"), { apps: verified });
    return differences.length > 0 ? DIFFERENT : DONE;
  },
});
