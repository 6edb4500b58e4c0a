/** `precast build`: writes the tree. */
import { ConfigError, type Settings } from "../../shared/config.ts";
import type { Database } from "../../shared/database/database.ts";
import type { TreeState } from "../../shared/state.ts";
import { buildTree } from "../build/build.ts";
import { foreignness } from "../build/mode.ts";
import { readSource } from "../build/source.ts";
import type { Change } from "../build/stage/changes.ts";
import { DONE, defineCommand } from "../command.ts";
import { withDatabase } from "../database.ts";
import { type Restored, restoreTree } from "../deploy/restore.ts";
import type { Store } from "../deploy/store.ts";
import { openTarget, STORE_SETTINGS, type StoreSettings } from "../deploy/target.ts";
import { formatBytes } from "../format.ts";
import { summaryOf } from "../summary.ts";
import type { Terminal } from "../terminal.ts";

export const buildCommand = defineCommand({
  name: "build",
  describes: "write every free answer as a file of the tree; after the first time, what has changed",
  argument: null,
  settings: ["apps", "full", "dryRun", "state", ...STORE_SETTINGS],
  examples: [
    "precast build",
    "precast build --app atlas --out dist/content",
    "precast build --dry-run",
    "precast build --state s3://content/api --region eu-central-1",
  ],
  run: async ({ terminal, now }, settings) => {
    const start = now();
    const target = targetOf(settings, now);
    let restored: Restored | null = null;
    const apps = await withDatabase(settings, async (database) => {
      restored = target === null ? null : await restore(database, target, terminal, settings);
      const progress = terminal.progress();
      return buildTree(database, {
        ...settings,
        now,
        ...(progress === null ? {} : { onProgress: progress.update }),
        ...(settings.dryRun ? { onChange: (change: Change) => sayChange(terminal, change) } : {}),
      }).finally(() => progress?.stop());
    });
    const seconds = (now().getTime() - start.getTime()) / 1_000;
    if (apps.length === 0) terminal.say("No app in the database: import a bundle first (precast import <folder>).");
    for (const report of apps) terminal.say(summaryOf(report, terminal, settings.dryRun));
    if (settings.json) terminal.result("", { apps, seconds, ...(restored === null ? {} : { restored }) });
    return DONE;
  },
});

function sayChange({ say, colors }: Terminal, { change, app, file }: Change): void {
  const verb = change === "gone" ? colors.red("delete") : colors.green("write");
  say(`${verb} ${app} ${file.replace(/^[^/]+\/v1\//, "")}`);
}

type StateSettings = StoreSettings & Settings<"state" | "full" | "dryRun">;

/** Where the tree may be brought back from; null where nobody asks for that. */
function targetOf(settings: StateSettings, now: () => Date): Store | null {
  if (settings.state === null) return null;
  if (settings.dryRun)
    throw new ConfigError(["--dry-run changes nothing, and --state fetches a tree: give one of them."]);
  const { timeout, retries } = settings;
  return openTarget(settings.state, settings, { timeout, retries, now }).store;
}

async function restore(
  database: Database,
  store: Store,
  terminal: Terminal,
  { out, concurrency, full }: StateSettings,
): Promise<Restored> {
  const { source } = await database.transaction("read", readSource);
  const progress = terminal.progress();
  const problemOf = (state: TreeState) => (full ? "--full asks for it" : foreignness(state, source));
  const restored = await restoreTree(store, { out, concurrency, problemOf, onProgress: progress?.update }).finally(() =>
    progress?.stop(),
  );
  const { files, bytes, reason } = restored;
  terminal.say(
    reason === null
      ? `${store.name}: fetched ${files} files, ${formatBytes(bytes)}: the tree of the last deploy`
      : `${store.name}: fetched nothing: ${reason}`,
  );
  return restored;
}
