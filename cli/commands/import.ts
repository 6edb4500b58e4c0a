/**
 * `precast import`: imports a bundle in one transaction, all or nothing. Checks the whole bundle before it touches the
 * database, and checks the entries again as it writes them, because their files can change in between.
 */
import type { CommonName, Settings } from "../../shared/config.ts";
import type { Database, Session } from "../../shared/database/database.ts";
import { DatabaseFault } from "../../shared/database/errors.ts";
import { sql } from "../../shared/sql/query.ts";
import { DONE, defineCommand } from "../command.ts";
import { withDatabase } from "../database.ts";
import { type Bundle, readBundle, readEntries } from "../import/bundle.ts";
import type { BundleApp, BundleType } from "../import/definition.ts";
import {
  addChanges,
  addProblem,
  type Changes,
  describeProblem,
  ImportProblems,
  type ImportReport,
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
  run: async ({ terminal }, settings, source) => {
    if (settings.from === null) return importFolder(terminal, settings, source, {});
    // Loaded only here: it brings the libraries of all formats.
    const { withConverted } = await import("./convert.ts");
    return withConverted(terminal, settings, settings.from, source, (bundle, conversion) =>
      importFolder(terminal, settings, bundle, { conversion }),
    );
  },
});

type ImportSettings = Settings<CommonName | "prune" | "dryRun">;

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
  const { app, types, fields, entries, missingTargets, warnings } = report;
  const changes = `entries ${changesText(entries)}; types ${changesText(types)}; fields ${changesText(fields)}`;
  terminal.say(`${terminal.colors.bold(app)}: ${settings.dryRun ? "dry run, nothing imported: " : ""}${changes}`);
  for (const warning of [...warnings, ...missingTargets.map(missingText)]) terminal.warn(warning);
  const next = settings.dryRun ? null : "precast build";
  if (next !== null) terminal.say(`Next: run \`${next}\`.`);
  if (settings.json) {
    const changed = { types, fields, entries, missing_targets: missingTargets, warnings };
    terminal.result("", { app, dry_run: settings.dryRun, ...changed, ...told, next });
  }
  return DONE;
}

function missingText({ type, field, target }: MissingTarget): string {
  return `content_types/${type}.json: the target of "${field}" is "${target}", which is no content type of this app. Until it is one, populate shows nothing of it.`;
}

function changesText({ created, updated, unchanged, deleted }: Changes): string {
  return `${created} created, ${updated} updated, ${unchanged} unchanged, ${deleted} deleted`;
}

export type ImportOptions = {
  /** Deletes what the app has and the bundle lacks. */
  readonly prune: boolean;
  /** Writes everything, then rolls it back. */
  readonly dryRun: boolean;
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
  const merger = openPendingListMerger(database);
  const report = await database
    .transaction("write", async (session) => {
      await session.query(sql(`SELECT pg_advisory_xact_lock(${IMPORT_LOCK}, hashtext($1))::text`, [checked.app.key]));
      await session.execute(
        `SAVEPOINT before_import; ${RAISE_PENDING_LIST_LIMIT}; SELECT precast.raise_flag('importing')`,
      );
      const report = await write(session, checked, merger, options);
      // Checks the deferred constraints now: a dry run must report them too, and rolls back before they are checked.
      await session.execute("SET CONSTRAINTS ALL IMMEDIATE");
      if (options.dryRun) await session.execute("ROLLBACK TO SAVEPOINT before_import");
      return report;
    })
    .finally(merger.whenIdle);
  const { created, updated, deleted } = report.entries;
  if (!options.dryRun && created + updated + deleted > 0) await maintainTables(database);
  return report;
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
  return { bundle, app: bundle.app, total, warnings: [...warnings.listed.values()].map(describeProblem) };
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

// Updates the statistics and merges the pending lists of the indexes after an import. Otherwise the
// embedded database would plan queries as if the entries did not exist, and each search would scan the pending lists.

/**
 * Ignores a DatabaseFault, such as a lock timeout or a lost connection: the import is committed already, and the
 * autovacuum of PostgreSQL does the same work later.
 */
async function maintainTables(database: Database): Promise<void> {
  await database
    .transaction("write", (session) =>
      session.execute(
        `${MERGE_PENDING_LISTS}; ANALYZE precast.entries, precast.entry_words, precast.terms, precast.value_counts`,
      ),
    )
    .catch((error: unknown) => {
      if (!(error instanceof DatabaseFault)) throw error;
    });
}

// Merges the pending lists of the GIN indexes while an import writes. New rows wait in these lists until a session
// merges them into the index, which is half as much work as writing them. A second connection does that in parallel.

type PendingListMerger = {
  /** To be called for each batch of rows that the import has written: starts a merge now and then, unless one runs. */
  readonly batchWritten: () => void;
  /** Resolves when no merge runs any more. */
  readonly whenIdle: () => Promise<void>;
};

/** Merging several batches at once takes less time than merging each: a key that they share is looked up once. */
const BATCHES_PER_MERGE = 8;
/**
 * For the transaction that writes: raises the size at which a writer merges a pending list itself, so that the merger
 * does it before.
 */
const RAISE_PENDING_LIST_LIMIT = "SET LOCAL gin_pending_list_limit = '32MB'; SET LOCAL work_mem = '64MB'";
/** Merges the pending lists, in a separate transaction. Fails when it waits for a lock for more than a second. */
const MERGE_PENDING_LISTS = "SET LOCAL lock_timeout = '1s'; SELECT precast.take_in_pending()";

/** On the embedded database, which has only one connection, the merger does nothing. */
function openPendingListMerger(database: Database): PendingListMerger {
  if (database.kind === "embedded") return { batchWritten: () => {}, whenIdle: async () => {} };
  let merging: Promise<unknown> | null = null;
  let batches = 0;

  async function merge(): Promise<void> {
    // After a failure, the sessions that write merge the pending lists, as they do without an import.
    await database.transaction("write", (session) => session.execute(MERGE_PENDING_LISTS)).catch(() => {});
    merging = null;
  }

  return {
    batchWritten: () => {
      if (batches % BATCHES_PER_MERGE === 0) merging ??= merge();
      batches += 1;
    },
    whenIdle: async () => {
      await merging;
    },
  };
}
