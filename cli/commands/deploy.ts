/** `precast deploy`: brings the tree to where a CDN reads it. */
import { DONE, defineCommand } from "../command.ts";
import { deployTree } from "../deploy/deploy.ts";
import type { Plan } from "../deploy/plan.ts";
import { openPurge, PURGE_SETTINGS } from "../deploy/purge/purge.ts";
import { openTarget, STORE_SETTINGS } from "../deploy/target.ts";
import { waitVisible } from "../deploy/visible.ts";
import { formatBytes, formatSeconds } from "../format.ts";
import type { Terminal } from "../terminal.ts";

export const deployCommand = defineCommand({
  name: "deploy",
  describes: "upload what of the tree differs to a bucket or a folder, and delete there what is gone",
  argument: "<target>",
  settings: [
    "dryRun",
    "maxDelete",
    "force",
    "cacheControl",
    "cdnCacheControl",
    ...STORE_SETTINGS,
    ...PURGE_SETTINGS,
    "waitVisible",
    "waitLimit",
  ],
  examples: [
    "precast deploy s3://content/api --region eu-central-1",
    "precast deploy s3://content --endpoint https://s3.example.com --path-style --dry-run",
    "precast deploy file:///srv/content --purge 'http://127.0.0.1:6081{path}' --purge-method PURGE",
    "precast deploy s3://content --purge cloudflare --wait-visible https://api.example.com",
  ],
  run: async ({ terminal, now, stopped }, settings, text) => {
    const start = now();
    const { timeout, retries, dryRun, waitVisible: address, waitLimit: limit, out } = settings;
    const patience = { timeout, retries, now };
    const target = openTarget(text, settings, patience);
    const purge = openPurge(settings, patience);
    const permit = untilStopped(stopped());
    const progress = terminal.progress();
    const { changed, tree, ...deployed } = await deployTree(target, {
      ...settings,
      permit,
      purge: purge ?? undefined,
      onProgress: progress?.update,
      onPlan: dryRun ? (plan: Plan) => sayPlan(terminal, plan) : undefined,
    }).finally(() => progress?.stop());
    if (address !== null && !dryRun) await waitVisible(tree, changed, { address, limit, timeout, now, out, permit });
    const seconds = (now().getTime() - start.getTime()) / 1_000;
    const { written, unchanged, deleted, bytes, conditional, purges } = deployed;
    if (conditional === false) terminal.warn(`${target.store.name} ${UNCONDITIONAL}`);
    const [write, drop] = dryRun ? ["would upload", "would delete"] : ["uploaded", "deleted"];
    terminal.result(
      `${target.store.name}: ${write} ${written} files, ${unchanged} unchanged, ${drop} ${deleted}, ${formatBytes(bytes)} in ${formatSeconds(seconds)}${purges === null ? "" : `, purged by ${purges} requests`}`,
      { target: target.store.name, dry_run: dryRun, ...deployed, seconds },
    );
    return DONE;
  },
});

const UNCONDITIONAL =
  "does not honour conditional writes (If-Match, If-None-Match): two deploys that begin at the same moment are not kept apart. Run one at a time.";

function untilStopped(stopped: Promise<void>): () => void {
  let stop = false;
  void stopped.then(() => {
    stop = true;
  });
  return () => {
    if (stop) throw new Error("The deploy was told to stop.");
  };
}

function sayPlan({ say, colors }: Terminal, { writes, removes }: Plan): void {
  for (const { path } of writes.flat()) say(`${colors.green("upload")} ${path}`);
  for (const path of removes.flat()) say(`${colors.red("delete")} ${path}`);
}
