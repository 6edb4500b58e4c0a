/** `precast build`: writes the tree. */
import { ConfigError, type Settings } from "../../shared/config.ts";
import type { Database } from "../../shared/database/database.ts";
import { formatBytes } from "../../shared/text.ts";
import { type BuildOptions, buildTree } from "../builder/build.ts";
import { summarizeApp, summarizeBuild } from "../builder/report.ts";
import { DONE, defineCommand } from "../command.ts";
import { noAppText, withDatabase } from "../database.ts";
import { type Restored, restoreTree } from "../deploy/restore.ts";
import type { Store } from "../deploy/store.ts";
import { openTarget, STORE_SETTINGS, type StoreSettings } from "../deploy/target.ts";
import { openSummary } from "../summary.ts";
import type { Terminal } from "../terminal.ts";

export const buildCommand = defineCommand({
  name: "build",
  describes: "write every free answer to the tree as a file; after the first build, only what has changed",
  argument: null,
  settings: ["apps", "full", "dryRun", "maxSize", "state", "summary", ...STORE_SETTINGS],
  examples: [
    "precast build",
    "precast build --app atlas --out dist/content",
    "precast build --dry-run",
    "precast build --state s3://content/api --region eu-central-1",
  ],
  run: async ({ terminal, now, beforeKilled }, settings) => {
    const start = now();
    const summarize = openSummary(settings.summary);
    const target = openStateStore(settings, now);
    const { apps, restored } = await withDatabase(settings, async (database) => {
      const restored = target === null ? null : await restore(database, target, settings);
      const progress = terminal.progress();
      const apps = await buildTree(database, {
        ...settings,
        now,
        onWarning: terminal.warn,
        ...(beforeKilled === undefined ? {} : { beforeKilled }),
        ...(progress === null ? {} : { onProgress: progress.update }),
        ...(settings.dryRun ? sayingChanges(terminal) : {}),
        ...(restored?.kind === "restored" ? { remote: restored.remote } : {}),
      }).finally(() => progress?.stop());
      return { apps, restored };
    });
    if (target !== null && restored !== null) terminal.say(`${target.name}: ${restoredText(restored)}`);
    const seconds = (now().getTime() - start.getTime()) / 1_000;
    if (apps.length === 0) throw new Error(noAppText(settings));
    for (const report of apps) terminal.say(summarizeApp(report, terminal, settings.dryRun));
    summarize(summarizeBuild(apps, settings.dryRun));
    const result = { dry_run: settings.dryRun, apps, seconds };
    if (settings.json)
      terminal.result("", restored === null ? result : { ...result, restored: restoredJson(restored) });
    return DONE;
  },
});

function sayingChanges({ say, colors }: Terminal): Required<Pick<BuildOptions, "onChange" | "onRestart">> {
  return {
    onChange: ({ change, app, file }) => {
      const verb = change === "gone" ? colors.red("delete") : colors.green("write");
      say(`${verb} ${app} ${file.replace(/^[^/]+\/v1\//, "")}`);
    },
    onRestart: (reason) => say(`${reason}: everything is built, and the list begins anew.`),
  };
}

type StateSettings = StoreSettings & Settings<"state" | "full" | "dryRun">;

/** The store of --state, from which the tree is restored; null without --state. Throws ConfigError with --dry-run. */
function openStateStore(settings: StateSettings, now: () => Date): Store | null {
  if (settings.state === null) return null;
  if (settings.dryRun)
    throw new ConfigError(["--dry-run changes nothing, but --state fetches a tree: specify only one of them."]);
  const { timeout, retries } = settings;
  return openTarget(settings.state, settings, { timeout, retries, now }).store;
}

async function restore(database: Database, store: Store, { out, concurrency, full }: StateSettings): Promise<Restored> {
  if (full) return { kind: "nothing", reason: "--full builds everything" };
  return restoreTree(store, { out, concurrency, database });
}

function restoredText(restored: Restored): string {
  if (restored.kind === "nothing") return `not used: ${restored.reason}`;
  const { files, bytes } = restored.remote.fetched();
  return `continued from the deployed tree: fetched ${files} of its ${restored.files} files, ${formatBytes(bytes)}`;
}

function restoredJson(restored: Restored) {
  const nothing = { files: 0, bytes: 0 };
  if (restored.kind === "nothing") return { ...nothing, reason: restored.reason };
  return { ...restored.remote.fetched(), reason: null };
}
