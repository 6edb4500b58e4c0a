/** `precast sync`: brings what differs from one's own tables into Precast's, once or for as long as it runs. */
import { openWakeup, pause } from "../../shared/async.ts";
import { ConfigError } from "../../shared/config.ts";
import type { Database } from "../../shared/database/database.ts";
import { sql } from "../../shared/sql/query.ts";
import { formatCounted } from "../../shared/text.ts";
import { readMap, type SourceMap } from "../adopt/map.ts";
import { describeRows, spoolRows } from "../adopt/rows.ts";
import { changeTriggers, fromSource, SOURCE_CHANNEL, withSource } from "../adopt/source.ts";
import { type Context, DONE, defineCommand } from "../command.ts";
import { readRows, withDatabase } from "../database.ts";
import { describeFailure } from "../errors.ts";
import { ImportProblems, type ImportReport } from "../import/report.ts";
import { withScratch } from "../scratch.ts";
import { describeChanges, importBundle, sayWarnings } from "./import.ts";

export const syncCommand = defineCommand({
  name: "sync",
  describes: "bring what differs from your own tables, by the mapping of precast adopt, in one transaction",
  argument: null,
  database: "created",
  settings: ["source", "map", "dryRun", "pruneTypes", "keepSyncing", "every", "triggers"],
  examples: ["precast sync --dry-run", "precast sync --triggers install", "precast sync --watch"],
  run: async (context, settings) => {
    if (settings.keepSyncing && settings.dryRun)
      throw new ConfigError(["--dry-run brings nothing that --watch could wait for: leave out one of them"]);
    const map = await readMap(settings.map);
    const url = settings.source ?? map.from ?? settings.databaseUrl;
    if (url === null)
      throw new ConfigError([`--from is missing: ${settings.map} names no database, and --database-url neither`]);
    return withSource(url, async (source) => {
      if (settings.triggers !== null) return setTriggers(context, source, map, settings.triggers);
      const { dryRun, pruneTypes, every, keepSyncing } = settings;
      const run = async (target: Database) => {
        const sync = { context, source, target, map, dryRun, pruneTypes, every };
        await (keepSyncing ? keepInStep(sync) : syncOnce(sync, null));
      };
      await withDatabase(settings, run, { share: keepSyncing });
      return DONE;
    });
  },
});

type Sync = {
  readonly context: Context;
  readonly source: Database;
  readonly target: Database;
  readonly map: SourceMap;
  readonly dryRun: boolean;
  readonly pruneTypes: boolean;
  readonly every: number;
};

/**
 * Returns the digest of the rows. Rows whose digest is `known` are in the target already, and are not compared again.
 */
async function syncOnce(
  { context, source, target, map, dryRun, pruneTypes }: Sync,
  known: string | null,
): Promise<string> {
  return withScratch(context, "sync", async (folder) => {
    const spool = await fromSource(source.transaction("read", (session) => spoolRows(session, map, folder)));
    if (spool.digest === known) return known;
    if (!pruneTypes) await refuseSurplusTypes(target, map);
    const report = await importBundle(target, spool.folder, { prune: true, dryRun }).catch(async (error: unknown) => {
      throw error instanceof ImportProblems ? new Error(await describeRows(error.message, spool)) : error;
    });
    if (known !== null && !hasChanged(report)) return spool.digest;
    const warnings = await Promise.all(report.warnings.map((warning) => describeRows(warning, spool)));
    tell(context, { ...report, warnings }, spool.rows, dryRun);
    return spool.digest;
  });
}

function tell({ terminal }: Context, report: ImportReport, rows: number, dryRun: boolean): void {
  const { app, types, fields, entries, missingTargets, warnings } = report;
  const dry = dryRun ? "dry run, nothing changed: " : "";
  const read = `${formatCounted(rows, "row")} read`;
  terminal.say(`${terminal.colors.bold(app)}: ${dry}${read}; ${describeChanges(report)}`);
  sayWarnings(terminal, report);
  const changes = { types, fields, entries, missing_targets: missingTargets, warnings };
  terminal.result("", { app, dry_run: dryRun, rows, ...changes });
}

function hasChanged({ types, fields, entries }: ImportReport): boolean {
  return [types, fields, entries].some(({ created, updated, deleted }) => created + updated + deleted > 0);
}

/** Types that were imported from elsewhere would be lost. */
async function refuseSurplusTypes(target: Database, { app, types }: SourceMap): Promise<void> {
  const stored = await readRows<{ readonly slug: string }>(
    target,
    `SELECT slug FROM precast.content_types JOIN precast.apps ON apps.id = app_id WHERE key = $1 ORDER BY slug COLLATE "C"`,
    [app.key],
  );
  const surplus = stored.filter(({ slug }) => !types.some(({ content_type }) => content_type.slug === slug));
  if (surplus.length === 0) return;
  const names = surplus.map(({ slug }) => slug).join(", ");
  throw new Error(
    `The app "${app.key}" has content types that the mapping lacks: ${names}. Delete them and their entries with --prune, or give the mapping another app.`,
  );
}

async function setTriggers(
  { terminal }: Context,
  source: Database,
  map: SourceMap,
  action: "print" | "install" | "remove",
): Promise<number> {
  const tables = [...new Set(map.types.flatMap((type) => type.tables))];
  const script = await fromSource(changeTriggers(source, tables, action));
  const done = { install: "Installed the trigger of", remove: "Removed the trigger of" };
  if (action === "print") terminal.result(script.trimEnd(), { tables, sql: script });
  else {
    terminal.say(`${done[action]} ${formatCounted(tables.length, "table")}: ${tables.join(", ")}.`);
    terminal.result("", { tables, sql: script });
  }
  return DONE;
}

// Goes on: at each announcement of a trigger, and by looking now and then for commits that nobody announces.

/** Looking takes at most this part of the time. */
const SHARE = 10;
const RETRY = 1_000;
/** The rows of a SELECT with these may change though nobody commits. */
const CLOCK =
  /\bnow\s*\(|\b(current_(date|time|timestamp)|local(time|timestamp)|(clock|statement|transaction)_timestamp)\b/i;

async function keepInStep({ context: { beforeKilled: _, ...context }, ...given }: Sync): Promise<void> {
  // Told to stop, it ends what it does, and leaves nothing to clean up.
  const sync = { ...given, context };
  const { source, map, every } = sync;
  const { terminal, stopped, now } = context;
  const stop = new AbortController();
  const wakeup = openWakeup();
  let isAnnounced = true;
  const onChange = () => {
    isAnnounced = true;
    wakeup.signal();
  };
  void stopped().then(() => stop.abort());
  stop.signal.addEventListener("abort", wakeup.signal);
  const stopListening = await source.listen(onChange, SOURCE_CHANNEL).catch((error: unknown) => {
    terminal.warn(
      `Triggers cannot announce changes, so they are looked for every ${every} s. ${describeFailure(error)}`,
    );
    return async () => {};
  });
  const readsClock = map.types.some(({ select }) => CLOCK.test(select.join("\n")));
  let digest: string | null = null;
  let seen: string | null = null;
  let warning: string | null = null;
  terminal.say("Watching your tables.");
  while (!stop.signal.aborted) {
    wakeup.reset();
    const start = now().getTime();
    let wait = every * 1_000;
    try {
      // Before the rows are read: whatever commits in between is seen at the next look.
      const snapshot = await readSnapshot(source);
      if (isAnnounced || readsClock || snapshot !== seen) {
        isAnnounced = false;
        digest = await syncOnce(sync, digest);
        if (warning !== null) terminal.warn("Bringing changes works again.");
        warning = null;
      }
      seen = snapshot;
      wait = Math.max(wait, (SHARE - 1) * (now().getTime() - start));
    } catch (error) {
      const text = describeFailure(error);
      if (text !== warning) terminal.warn(`Changes could not be brought, which is tried again. ${text}`);
      warning = text;
      isAnnounced = true;
      wait = Math.min(wait, RETRY);
    }
    await Promise.race([wakeup.wait(), pause(wait, stop.signal)]);
  }
  await stopListening();
}

/** Differs from an earlier one when a transaction that writes has begun or ended since. */
async function readSnapshot(source: Database): Promise<string> {
  const [row] = await fromSource(source.query(sql("SELECT txid_current_snapshot()::text")));
  return row?.[0] as string;
}
