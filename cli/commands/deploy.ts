/** `precast deploy`: brings the tree to where a CDN reads it. */
import { DONE, defineCommand } from "../command.ts";
import { deployTree } from "../deploy/deploy.ts";
import type { Plan } from "../deploy/plan.ts";
import { openTarget, STORE_SETTINGS } from "../deploy/target.ts";
import { formatBytes, formatSeconds } from "../format.ts";
import type { Terminal } from "../terminal.ts";

export const deployCommand = defineCommand({
  name: "deploy",
  describes: "upload what of the tree differs to a bucket or a folder, and delete there what is gone",
  argument: "<target>",
  settings: ["dryRun", "maxDelete", "force", "cacheControl", "cdnCacheControl", ...STORE_SETTINGS],
  examples: [
    "precast deploy s3://content/api --region eu-central-1",
    "precast deploy s3://content --endpoint https://s3.example.com --path-style --dry-run",
    "precast deploy file:///srv/content",
  ],
  run: async ({ terminal, now, stopped }, settings, text) => {
    const start = now();
    const { timeout, retries, dryRun } = settings;
    const target = openTarget(text, settings, { timeout, retries, now });
    const progress = terminal.progress();
    const { changed: _, ...deployed } = await deployTree(target, {
      ...settings,
      permit: untilStopped(stopped()),
      ...(progress === null ? {} : { onProgress: progress.update }),
      ...(dryRun ? { onPlan: (plan: Plan) => sayPlan(terminal, plan) } : {}),
    }).finally(() => progress?.stop());
    const seconds = (now().getTime() - start.getTime()) / 1_000;
    const { written, unchanged, deleted, bytes, conditional } = deployed;
    if (conditional === false) terminal.warn(`${target.store.name} ${UNCONDITIONAL}`);
    const [write, drop] = dryRun ? ["would upload", "would delete"] : ["uploaded", "deleted"];
    terminal.result(
      `${target.store.name}: ${write} ${written} files, ${unchanged} unchanged, ${drop} ${deleted}, ${formatBytes(bytes)} in ${formatSeconds(seconds)}`,
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
