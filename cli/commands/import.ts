/**
 * `precast import`: imports a bundle in one transaction, all or nothing. Checks the whole bundle before it touches the
 * database, and checks the entries again as it writes them, because their files can change in between.
 */
import type { CommonName, Settings } from "../../shared/config.ts";
import type { Database, Session } from "../../shared/database/database.ts";
import { sql } from "../../shared/sql/query.ts";
import { DIFFERENT, DONE, defineCommand } from "../command.ts";
import { withDatabase } from "../database.ts";
import { type Bundle, readBundle, readEntries } from "../import/bundle.ts";
import {
  maintainTables,
  openPendingListMerger,
  type PendingListMerger,
  RAISE_PENDING_LIST_LIMIT,
} from "../import/maintenance.ts";
import { type MediaPlan, planMedia } from "../import/media.ts";
import {
  addChanges,
  addProblem,
  type Changes,
  describeProblems,
  ImportProblems,
  type ImportReport,
  type MediaChanges,
  type MissingTarget,
  NO_CHANGES,
  noProblems,
  type Problems,
  quote,
} from "../import/report.ts";
import {
  findClashes,
  findMissingTargets,
  type Pruned,
  pruneDefinitions,
  pruneEntries,
  readTypeRows,
  type TypeRow,
  writeApp,
  writeEntries,
  writeFields,
  writeTypes,
} from "../import/rows.ts";
import type { BundleApp, BundleType } from "../import/shape.ts";
import type { Terminal } from "../terminal.ts";

export const importCommand = defineCommand({
  name: "import",
  describes: "import a content bundle into the database, all of it or nothing",
  argument: "<folder>",
  settings: ["prune", "dryRun", "from", "bundleApp", "locale", "unsafeHtml", "strict"],
  database: "created",
  examples: [
    "precast import export/blog",
    "precast import export/blog --prune --dry-run",
    "precast import posts/ --from markdown --app blog",
  ],
  run: async (context, settings, source) => {
    const { terminal } = context;
    if (settings.from === null) return importFolder(terminal, settings, source, {});
    // Loaded only here: it brings the libraries of all formats.
    const { withConverted } = await import("./convert.ts");
    return withConverted(context, settings, settings.from, source, (bundle, conversion) =>
      importFolder(terminal, settings, bundle, { conversion }),
    );
  },
});

type ImportSettings = Settings<CommonName | "prune" | "dryRun" | "strict">;

/** `told` is what else the report has with --json. */
async function importFolder(
  terminal: Terminal,
  settings: ImportSettings,
  folder: string,
  told: object,
): Promise<number> {
  const progress = terminal.progress("entries");
  const options = { ...settings, ...(progress === null ? {} : { onProgress: progress.update }) };
  const report = await withDatabase(settings, (database) => importBundle(database, folder, options)).finally(() =>
    progress?.stop(),
  );
  const { app, types, fields, entries, media = null, missingTargets, warnings } = report;
  const isRefused = settings.strict && hasWarnings(report);
  const why = isRefused ? "nothing imported, because of --strict: " : "";
  const done = `${describeChanges(report)}${media === null ? "" : mediaText(media)}`;
  terminal.say(`${terminal.colors.bold(app)}: ${settings.dryRun ? "dry run, nothing imported: " : why}${done}`);
  sayWarnings(terminal, report);
  const next = settings.dryRun || isRefused ? null : "precast build";
  if (next !== null) terminal.say(`Next: run \`${next}\`.`);
  if (settings.json) {
    const changed = { types, fields, entries, media, missing_targets: missingTargets, warnings };
    terminal.result("", { app, dry_run: settings.dryRun, ...changed, ...told, next });
  }
  return isRefused ? DIFFERENT : DONE;
}

function missingText({ type, field, target }: MissingTarget): string {
  return `content_types/${type}.json: the target of "${field}" is "${target}", which is no content type of this app. Until it is one, populate shows nothing of it.`;
}

export function describeChanges({ types, fields, entries }: ImportReport): string {
  return `entries ${changesText(entries)}; types ${changesText(types)}; fields ${changesText(fields)}`;
}

export function sayWarnings(terminal: Terminal, { warnings, missingTargets }: ImportReport): void {
  for (const warning of [...warnings, ...missingTargets.map(missingText)]) terminal.warn(warning);
}

export function changesText({ created, updated, unchanged, deleted }: Changes): string {
  return `${created} created, ${updated} updated, ${unchanged} unchanged, ${deleted} deleted`;
}

function mediaText({ copied, unchanged, deleted }: MediaChanges): string {
  return `; media ${copied} copied, ${unchanged} unchanged, ${deleted} deleted`;
}

function hasWarnings({ warnings, missingTargets }: Pick<ImportReport, "warnings" | "missingTargets">): boolean {
  return warnings.length + missingTargets.length > 0;
}

export type ImportOptions = {
  /** Deletes what the app has and the bundle lacks. */
  readonly prune: boolean;
  /** Writes everything, then rolls it back. */
  readonly dryRun: boolean;
  /** Called when everything is written, before a dry run is rolled back. */
  readonly inspect?: (session: Session, appKey: string) => Promise<void>;
  /** Imports nothing of a bundle that there is something to warn of. */
  readonly strict?: boolean;
  /** Where media are copied to; without it, none are. */
  readonly dataDir?: string;
  /** Called after each batch of entries. `total` is the number of entries in the bundle. */
  readonly onProgress?: (progress: { readonly done: number; readonly total: number }) => void;
};

/** First key of the advisory lock of an app's import: any number that other programs are unlikely to use. */
const IMPORT_LOCK = 7_232_279;
/** From this number of entries on, building the indexes of an empty database after the rows saves time. */
const WORTH_LATE_INDEXES = 5_000;
const NOTHING_PRUNED: Pruned = { types: NO_CHANGES, fields: NO_CHANGES, entries: NO_CHANGES };

/** Throws ImportProblems when the bundle is invalid; nothing of it is imported then. */
export async function importBundle(database: Database, folder: string, options: ImportOptions): Promise<ImportReport> {
  const checked = await checkBundle(folder, options.prune);
  const media = await planBundleMedia(checked, options);
  const dryRun = options.dryRun || (options.strict === true && checked.warnings.length > 0);
  const merger = openPendingListMerger(database);
  let isKept = false;
  const report = await database
    .transaction("write", async (session) => {
      await session.query(sql(`SELECT pg_advisory_xact_lock(${IMPORT_LOCK}, hashtext($1))::text`, [checked.app.key]));
      await session.execute(
        `SAVEPOINT before_import; ${RAISE_PENDING_LIST_LIMIT}; SELECT precast.raise_flag('importing')`,
      );
      const report = await write(session, checked, merger, { ...options, dryRun });
      await options.inspect?.(session, checked.app.key);
      // Checks the deferred constraints now: a dry run must report them too, and rolls back before they are checked.
      await session.execute("SET CONSTRAINTS ALL IMMEDIATE");
      isKept = !dryRun && !(options.strict === true && hasWarnings(report));
      if (isKept) await media?.copy();
      else await session.execute("ROLLBACK TO SAVEPOINT before_import");
      return report;
    })
    .finally(merger.whenIdle);
  if (isKept) media?.prune();
  const { created, updated, deleted } = report.entries;
  if (isKept && created + updated + deleted > 0) await maintainTables(database);
  return media === null ? report : { ...report, media: media.changes };
}

async function planBundleMedia({ bundle, app }: CheckedBundle, options: ImportOptions): Promise<MediaPlan | null> {
  const { dataDir, prune } = options;
  if (bundle.media === null || dataDir === undefined) return null;
  return planMedia(bundle.media, dataDir, app.key, prune);
}

/** A valid bundle, with the number of its entries. */
type CheckedBundle = {
  readonly bundle: Bundle;
  readonly app: BundleApp;
  readonly total: number;
  readonly warnings: readonly string[];
};

async function checkBundle(folder: string, prune: boolean): Promise<CheckedBundle> {
  const problems = noProblems();
  const warnings = noProblems();
  const bundle = await readBundle(folder, prune, problems, warnings);
  let total = 0;
  for (const slug of bundle.known.keys()) {
    for await (const batch of readEntries(bundle, slug, new Map(), problems, warnings)) {
      total += batch.length;
    }
  }
  if (bundle.app === null || problems.listed.size > 0) throw new ImportProblems(problems);
  return { bundle, app: bundle.app, total, warnings: describeProblems(warnings) };
}

async function write(
  session: Session,
  { bundle, app, total, warnings }: CheckedBundle,
  merger: PendingListMerger,
  { prune, dryRun, onProgress }: ImportOptions,
): Promise<ImportReport> {
  const id = await writeApp(session, app);
  const pruned = prune ? await pruneDefinitions(session, id, bundle.types) : NOTHING_PRUNED;
  const types = await writeTypes(session, id, bundle.types);
  const fields = await writeFields(session, id, bundle.types);
  await refuseClashes(session, id, bundle.types);
  const missingTargets = await findMissingTargets(session, id);
  const rows = await readTypeRows(session, id, bundle.types);
  // After the definitions: whoever else writes some waits then, if at all, for a transaction that needs none of them. Not
  // in a dry run, for which nobody should have to wait.
  if (total >= WORTH_LATE_INDEXES && !dryRun) await session.query(sql("SELECT precast.index_at_commit()::text"));
  let entries = pruned.entries;
  let done = 0;
  for (const type of bundle.types) {
    const advance = (count: number) => {
      done += count;
      merger.batchWritten();
      onProgress?.({ done, total });
    };
    entries = addChanges(
      entries,
      await writeType(session, bundle, type, rows.get(type.slug) as TypeRow, prune, advance),
    );
  }
  return {
    app: app.key,
    types: addChanges(pruned.types, types),
    fields: addChanges(pruned.fields, fields),
    entries,
    missingTargets,
    warnings,
  };
}

async function writeType(
  session: Session,
  bundle: Bundle,
  type: BundleType,
  row: TypeRow,
  prune: boolean,
  advance: (count: number) => void,
): Promise<Changes> {
  const problems = noProblems();
  const seen = new Map<string, number>();
  let changes = NO_CHANGES;
  // The database writes a batch while the next is read.
  let writing = Promise.resolve(NO_CHANGES);
  for await (const batch of readEntries(bundle, type.slug, seen, problems, null)) {
    changes = addChanges(changes, await writing);
    writing = writeEntries(session, row, batch).then((written) => {
      advance(batch.length);
      return written;
    });
    // An error is thrown where `writing` is awaited. This handler only keeps it from being reported as unhandled.
    writing.catch(() => {});
  }
  changes = addChanges(changes, await writing);
  refuse(problems);
  return prune && !row.isNew ? addChanges(changes, await pruneEntries(session, row, seen)) : changes;
}

async function refuseClashes(session: Session, app: string, types: readonly BundleType[]): Promise<void> {
  const problems = noProblems();
  for (const { slug, field, media } of await findClashes(session, app)) {
    const kept = types.find((type) => type.slug === slug)?.fields.some(({ name }) => name === field) ? media : field;
    addProblem(
      problems,
      `content_types/${slug}.json`,
      null,
      `field ${quote(field)} has the name that is reserved for the address of the media field ${quote(media)}; the database still has ${quote(kept)}, ` +
        "which this bundle lacks: import with --prune to delete it",
    );
  }
  refuse(problems);
}

function refuse(problems: Problems): void {
  if (problems.listed.size > 0) throw new ImportProblems(problems);
}
