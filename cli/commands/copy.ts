/** `precast copy`: brings the content of one app into another of the same database, and shows the differences. */
import { ConfigError } from "../../shared/config.ts";
import type { Database, Session } from "../../shared/database/database.ts";
import { DONE, defineCommand } from "../command.ts";
import { readRows, withDatabase } from "../database.ts";
import { exportApp, readStoredApp } from "../export/bundle.ts";
import { type Differences, type DifferentEntry, findDifferences } from "../export/difference.ts";
import type { BundleApp } from "../import/shape.ts";
import { withScratch } from "../scratch.ts";
import type { Terminal } from "../terminal.ts";
import { changesText, importBundle, sayWarnings } from "./import.ts";

export const copyCommand = defineCommand({
  name: "copy",
  describes: "bring the content of one app into another of the same database, in one transaction",
  argument: "<from> <to>",
  settings: ["types", "prune", "dryRun"],
  examples: ["precast copy staging production --dry-run", "precast copy staging production --type posts --prune"],
  run: async (context, settings, from, to = "") => {
    const { terminal } = context;
    const { types, prune, dryRun, dataDir } = settings;
    if (from === to) throw new ConfigError(["An app cannot be copied into itself: name two apps."]);
    if (types !== null && prune)
      throw new ConfigError(["--prune would delete the other types: leave out --type, or --prune."]);
    const copyApp = (database: Database) =>
      withScratch(context, "copy", async (folder) => {
        const differences = await database.transaction("read", async (session) => {
          const as = await readTarget(session, to);
          await exportApp(session, folder, { appKey: from, types, as, dataDir });
          return findDifferences(session, from, to, types);
        });
        return { differences, report: await importBundle(database, folder, { prune, dryRun, dataDir }) };
      });
    const { differences, report } = await withDatabase(settings, copyApp);
    sayDifferences(terminal, differences, { from, to, prune });
    const changes = `entries ${changesText(report.entries)}; types ${changesText(report.types)}`;
    terminal.say(`${terminal.colors.bold(to)}: ${dryRun ? "dry run, nothing copied: " : ""}${changes}`);
    sayWarnings(terminal, report);
    const { types: typeChanges, fields, entries } = report;
    terminal.result("", { from, to, dry_run: dryRun, types: typeChanges, fields, entries, differences });
    return DONE;
  },
});

/** The app that is copied into keeps its name and the address of its media. A new one has its key for a name. */
async function readTarget(session: Session, key: string): Promise<BundleApp> {
  const [found] = await readRows(session, "SELECT key FROM precast.apps WHERE key = $1", [key]);
  return found === undefined ? { key, name: key, media_base_url: null } : (await readStoredApp(session, key)).app;
}

type Copying = { readonly from: string; readonly to: string; readonly prune: boolean };

const SIGNS: Readonly<Record<DifferentEntry["change"], string>> = { new: "+", changed: "~", "only there": "-" };

function sayDifferences(
  { say, colors }: Terminal,
  { counts, entries }: Differences,
  { from, to, prune }: Copying,
): void {
  if (counts.length === 0) say(`${from} and ${to} have the same entries.`);
  for (const { type, change, count } of counts) {
    const fate =
      change === "only there" ? `only in ${to}, ${prune ? "deleted" : "stay (--prune deletes them)"}` : change;
    say(`${colors.bold(type)}: ${count} ${fate}`);
    const shown = entries.filter((entry) => entry.type === type && entry.change === change);
    for (const { id, title, fields } of shown)
      say(
        `  ${SIGNS[change]} ${title ?? id}${title === null ? "" : ` (${id})`}${fields.length > 0 ? `: ${fields.join(", ")}` : ""}`,
      );
    if (count > shown.length) say(`  … and ${count - shown.length} more`);
  }
}
