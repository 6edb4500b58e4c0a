/** `precast queue`: shows which apps wait for the workers of `precast work`, run or have failed, and retries or drops them. */
import { ConfigError } from "../../shared/config.ts";
import type { Database } from "../../shared/database/database.ts";
import { formatCounted, formatSeconds } from "../../shared/text.ts";
import { DONE, defineCommand } from "../command.ts";
import { withDatabase } from "../database.ts";
import type { Terminal } from "../terminal.ts";
import { countQueue, dropApps, dropTarget, hasQueue, readQueue, retryApps } from "../work/queue.ts";

const ACTIONS = ["show", "retry", "drop"] as const;
type Action = (typeof ACTIONS)[number];

export const queueCommand = defineCommand({
  name: "queue",
  describes: "show which apps wait to be published by `precast work`, run or have failed; retry or drop them",
  argument: "[action] [app...]",
  values: () => ACTIONS,
  settings: ["target"],
  examples: [
    "precast queue",
    "precast queue retry",
    "precast queue retry atlas",
    "precast queue drop atlas",
    "precast queue drop --target s3://content/old",
  ],
  run: async ({ terminal }, { target, ...settings }, text, ...apps) => {
    const action = readAction(text, apps, target);
    if (settings.databaseUrl === null)
      throw new ConfigError([
        "The queue is in a PostgreSQL, whose address is missing: specify --database-url (DATABASE_URL).",
      ]);
    await withDatabase(settings, async (database) => {
      if (!(await hasQueue(database)))
        throw new ConfigError(["The database has no queue: `precast work` makes it when it is first started."]);
      const chosen = apps.length === 0 ? null : apps;
      if (action === "show") return showQueue(terminal, database);
      if (action === "retry") return tell(terminal, "tried again now", await retryApps(database, chosen));
      if (target === null) return tell(terminal, "dropped", await dropApps(database, chosen));
      if (!(await dropTarget(database, target)))
        throw new ConfigError([`No worker has ever been started with --target ${target}.`]);
      terminal.result(`${target} is forgotten: publications are no longer queued for it.`, { target });
    });
    return DONE;
  },
});

/** Throws ConfigError. Only what is named is dropped. */
function readAction(text: string, apps: readonly string[], target: string | null): Action {
  const action = ACTIONS.find((one) => one === (text || "show"));
  if (action === undefined)
    throw new ConfigError([
      `There is no action ${text}: specify ${ACTIONS.slice(1).join(" or ")}, or none to see the queue.`,
    ]);
  if (target !== null && (action !== "drop" || apps.length > 0))
    throw new ConfigError(["--target is only for `precast queue drop`, without apps: it forgets the whole target."]);
  if (action === "drop" && apps.length === 0 && target === null)
    throw new ConfigError(["Specify what to drop: the keys of apps, or --target for all of a target."]);
  if (action === "show" && apps.length > 0)
    throw new ConfigError([`Specify what to do with ${apps.join(", ")}: retry or drop.`]);
  return action;
}

/** Apps that are shown: with ten thousand waiting, the counts say more. */
const MOST_SHOWN = 50;

async function showQueue({ table, result, width: _ }: Terminal, database: Database): Promise<void> {
  const [counts, apps] = await Promise.all([countQueue(database), readQueue(database, MOST_SHOWN)]);
  const { waiting, running, failed, oldest } = counts;
  const all = waiting + running + failed;
  const age =
    oldest === null
      ? "everything that was published is visible"
      : `the oldest publication waits for ${formatSeconds(oldest)}`;
  const rows = apps.map(({ app, target, state, large, since, attempts, next, error }) => [
    ...[app, large ? `${state} (large)` : state, since, attempts, next ?? "", error ?? "", target],
  ]);
  const more = all > apps.length ? [`and ${formatCounted(all - apps.length, "more app")}`] : [];
  const head = ["App", "State", "Published", "Attempts", "Next", "Error", "Target"];
  const shown = rows.length === 0 ? [] : [table(head, rows), ...more];
  result([`${waiting} waiting, ${running} running, ${failed} failed; ${age}.`, ...shown].join("\n"), {
    ...counts,
    apps,
  });
}

function tell({ result }: Terminal, what: string, apps: number): void {
  result(`${formatCounted(apps, "app")} ${apps === 1 ? "is" : "are"} ${what}.`, { apps });
}
