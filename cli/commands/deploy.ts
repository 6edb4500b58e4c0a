/** `precast deploy`: copies the tree to the bucket or the folder that a CDN reads. */
import type { CommonName, Settings } from "../../shared/config.ts";
import { formatBytes, formatCount, formatCounted, formatFiles, formatSeconds } from "../../shared/text.ts";
import { DONE, defineCommand } from "../command.ts";
import { type Deployed, deployTree } from "../deploy/deploy.ts";
import type { MediaDeployed } from "../deploy/media.ts";
import type { Plan } from "../deploy/plan.ts";
import { PURGE_SETTINGS, type Purge } from "../deploy/purge.ts";
import { openTargetAndPurge, STORE_SETTINGS, type Target, UNCONDITIONAL } from "../deploy/target.ts";
import { waitVisible } from "../deploy/visible.ts";
import { nameColumns, openSummary, type Summary } from "../summary.ts";
import type { Terminal } from "../terminal.ts";

const SETTINGS = [
  "dryRun",
  "maxDelete",
  "force",
  "allowOlder",
  "allowLocalMedia",
  "media",
  "cacheControl",
  "cdnCacheControl",
  ...STORE_SETTINGS,
  ...PURGE_SETTINGS,
  "waitVisible",
  "waitLimit",
  "summary",
] as const;
type DeploySettings = Settings<(typeof SETTINGS)[number] | CommonName>;

export const deployCommand = defineCommand({
  name: "deploy",
  describes: "upload the files of the tree that differ to a bucket or a folder, and delete those there that are gone",
  argument: "<target>",
  settings: SETTINGS,
  database: "unused",
  examples: [
    "precast deploy s3://content/api --region eu-central-1",
    "precast deploy s3://content --endpoint https://s3.example.com --path-style --dry-run",
    "precast deploy file:///srv/content --purge 'http://127.0.0.1:6081{path}' --purge-method PURGE",
    "precast deploy s3://content/api --media",
    "precast deploy s3://content --purge cloudflare --wait-visible https://api.example.com",
  ],
  run: async ({ terminal, now, stopped }, settings, text) => {
    const start = now();
    const summarize = openSummary(settings.summary);
    const throwIfStopped = openStopCheck(stopped());
    const { target, purge } = openTargetAndPurge(text, settings, now, throwIfStopped);
    const deployed = await deploy(target, purge, settings, terminal, throwIfStopped);
    for (const { message } of deployed.refusals)
      terminal.warn(`Without --dry-run, the deploy would be refused: ${message}`);
    if (!settings.dryRun) await waitFor(deployed, settings, now, throwIfStopped);
    const seconds = (now().getTime() - start.getTime()) / 1_000;
    printReport(terminal, target.store.name, deployed, settings.dryRun, seconds);
    summarize(summarizeDeploy(target.store.name, deployed, settings.dryRun, seconds));
    return DONE;
  },
});

function deploy(
  target: Target,
  purge: Purge | null,
  settings: DeploySettings,
  terminal: Terminal,
  throwIfStopped: () => void,
): Promise<Deployed> {
  const progress = terminal.progress();
  const { dryRun, media } = settings;
  const sayMedia = (path: string) => terminal.say(`${terminal.colors.green("upload")} ${path}`);
  return deployTree(target, {
    ...settings,
    throwIfStopped,
    media: media ? { ...settings, onMedia: dryRun ? sayMedia : undefined } : undefined,
    purge: purge ?? undefined,
    onProgress: progress?.update,
    onPlan: dryRun ? (plan: Plan) => sayPlan(terminal, plan) : undefined,
  }).finally(() => progress?.stop());
}

async function waitFor(
  { tree, changed }: Deployed,
  { waitVisible: address, waitLimit: limit, timeout, out }: DeploySettings,
  now: () => Date,
  throwIfStopped: () => void,
): Promise<void> {
  if (address !== null) await waitVisible(tree, changed, { address, limit, timeout, now, out, throwIfStopped });
}

function printReport(terminal: Terminal, name: string, deployed: Deployed, dryRun: boolean, seconds: number): void {
  const { changed: _, tree: __, refusals: ___, ...report } = deployed;
  const { written, unchanged, deleted, bytes, conditional, purges } = report;
  if (conditional === false) terminal.warn(`${name} ${UNCONDITIONAL}`);
  const [upload, drop] = dryRun ? ["would upload", "would delete"] : ["uploaded", "deleted"];
  const done = `${upload} ${formatFiles(written)}, ${unchanged} unchanged, ${drop} ${deleted}, ${formatBytes(bytes)}`;
  const purged = purges === null ? "" : `, purged with ${formatCounted(purges, "request")}`;
  const media = report.media === undefined ? "" : `, ${upload} ${mediaText(report.media)}`;
  terminal.result(`${name}: ${done} in ${formatSeconds(seconds)}${purged}${media}`, {
    target: name,
    dry_run: dryRun,
    ...report,
    seconds,
  });
}

function mediaText({ written, unchanged, bytes }: MediaDeployed): string {
  return `${formatFiles(written)} of media, ${unchanged} unchanged, ${formatBytes(bytes)}`;
}

function summarizeDeploy(name: string, deployed: Deployed, dryRun: boolean, seconds: number): Summary {
  const { written, deleted, unchanged, bytes, purges } = deployed;
  const purged = purges === null ? "nothing" : formatCounted(purges, "request");
  const counts = [written, deleted, unchanged].map(formatCount);
  return {
    ...{ title: "Precast deploy", dryRun },
    columns: nameColumns("Target", "Uploaded", "Deleted", "Unchanged", "Size", "Purged", "Time"),
    rows: [[name, ...counts, formatBytes(bytes), purged, formatSeconds(seconds)]],
  };
}

/** Returns a function that throws once the process is told to stop. */
function openStopCheck(stopped: Promise<void>): () => void {
  let isStopped = false;
  void stopped.then(() => {
    isStopped = true;
  });
  return () => {
    if (isStopped) throw new Error("The deploy was stopped by a signal.");
  };
}

function sayPlan({ say, colors }: Terminal, { writes, removes }: Plan): void {
  for (const { path } of writes.flat()) say(`${colors.green("upload")} ${path}`);
  for (const path of removes.flat()) say(`${colors.red("delete")} ${path}`);
}
