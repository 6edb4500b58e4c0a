/** Checks what servers leave behind: counts in many rows, ids of sent batches, and journals that nobody sends. */
import { readdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { findHolder } from "../../shared/lock.ts";
import { formatBytes, formatCount, formatCounted } from "../../shared/text.ts";
import { readRow } from "../database.ts";
import { type CheckContext, defineCheck, type Found, statementRemedy } from "./check.ts";

// Finds counts that writers have left in many rows: every list adds them up.

/** Rows of the type that has the most, and whether the role may add them up. */
type CountFacts = { readonly most: number; readonly mayFold: boolean };

export const countsCheck = defineCheck({
  name: "counts",
  gather: readCounts,
  judge: ({ most, mayFold }) => [most < MANY_COUNTS ? null : findCounts(most, mayFold)],
});

function findCounts(most: number, mayFold: boolean): Found {
  return {
    subject: "precast.entry_counts",
    problem: `The entries of one type are counted in ${formatCount(most)} rows: transactions at REPEATABLE READ or SERIALIZABLE leave one for each statement, and only builds add them up.`,
    gain: "Lists read one row in place of all of them for their totals.",
    ...statementRemedy(mayFold, "the owner of the schema", [FOLD_COUNTS], COUNTS_NOTE),
  };
}

/** Adding up this many rows takes as long as the rest of a fast list. */
const MANY_COUNTS = 1_000;
const FOLD_COUNTS = "SELECT precast.fold_crowded()";
const COUNTS_NOTE = "It does not block writers. Run it regularly, or a build.";

/** Leaves out a logical copy, which must keep the rows that it is sent (schema/0007_counts.sql). */
function readCounts({ database }: CheckContext): Promise<CountFacts> {
  return readRow(
    database,
    `SELECT (SELECT coalesce(max(rows), 0) FROM (
    SELECT count(*) AS rows FROM precast.entry_counts GROUP BY content_type_id) AS types WHERE NOT precast.counts_are_brought()) AS most,
  has_function_privilege('precast.fold_crowded()', 'EXECUTE') AS "mayFold"`,
  );
}

// Finds ids of usage batches that are stored long after any server could send the batch again.

type BatchFacts = { readonly count: number; readonly mayDelete: boolean };

export const batchesCheck = defineCheck({
  name: "batches",
  gather: countExpired,
  judge: ({ count, mayDelete }) => [count < MANY_BATCHES ? null : findBatches(count, mayDelete)],
});

function findBatches(count: number, mayDelete: boolean): Found {
  return {
    subject: "precast.usage_batches",
    problem: `The ids of ${formatCount(count)} batches are still stored, although their journals were deleted more than two days ago: no running server deletes them.`,
    gain: "The table and its indexes stay small, and counts are stored quickly.",
    ...statementRemedy(mayDelete, "the owner of the table", [DELETE_BATCHES], BATCHES_NOTE),
  };
}

const MANY_BATCHES = 10_000;
/** Servers delete such rows after one day; two days leave them time to do so. */
const EXPIRED = "removed_at < now() - interval '2 days'";
const DELETE_BATCHES = `DELETE FROM precast.usage_batches WHERE ${EXPIRED}`;
const BATCHES_NOTE = "A running server deletes 10,000 of them every ten minutes.";

function countExpired({ database }: CheckContext): Promise<BatchFacts> {
  return readRow(
    database,
    `SELECT count(*) AS count, has_table_privilege('precast.usage_batches', 'DELETE') AS "mayDelete"
FROM precast.usage_batches WHERE ${EXPIRED}`,
  );
}

// Finds journals of the ledger that no server sends: their server is gone, or a server could not read all lines.

/** `held` tells whether a live server has it. */
type Journal = { readonly bytes: number; readonly minutes: number; readonly broken: boolean; readonly held: boolean };
type JournalFacts = {
  readonly folder: string;
  readonly journals: readonly Journal[];
  /** The system's error code when the folder cannot be read. Null when it can be, and when there is none. */
  readonly refusal: string | null;
};

export const journalsCheck = defineCheck({
  name: "journals",
  gather: readJournals,
  judge: (facts) => [unsentFinding(facts), brokenFinding(facts), unreadFinding(facts)],
});

async function readJournals({ dataDir, now }: CheckContext): Promise<JournalFacts> {
  const folder = join(dataDir, "ledger");
  try {
    const files = (await readdir(folder, { recursive: true })).filter((name) => /\.ndjson(\.broken)?$/.test(name));
    const journals = await Promise.all(files.map((name) => readJournal(join(folder, name), now)));
    return { folder, journals: journals.filter((journal) => journal !== null), refusal: null };
  } catch (error) {
    const code = findCode(error);
    return { folder, journals: [], refusal: code === "ENOENT" ? null : code };
  }
}

function findCode(error: unknown): string {
  return String((error as NodeJS.ErrnoException).code ?? error);
}

/** Null when the file is gone, because a server has just sent it. */
async function readJournal(path: string, now: Date): Promise<Journal | null> {
  const found = await stat(path).catch((error: unknown) => {
    if (findCode(error) === "ENOENT") return null;
    throw error;
  });
  if (found === null) return null;
  const minutes = (now.getTime() - found.mtimeMs) / 60_000;
  const held = findHolder(join(dirname(path), "lock")) !== null;
  return { bytes: found.size, minutes, broken: path.endsWith(".broken"), held };
}

/** Running servers adopt the journals of dead ones every ten minutes. */
const UNSENT_MINUTES = 15;

function unsentFinding({ folder, journals }: JournalFacts): Found | null {
  const unsent = journals.filter(({ broken, held, minutes }) => !broken && !held && minutes >= UNSENT_MINUTES);
  if (unsent.length === 0) return null;
  return {
    subject: `${folder}: unsent journals`,
    problem: `${describe(unsent)} of counted requests, not written for ${age(unsent)}: no running server uses the folder.`,
    gain: "The counts reach the database.",
    remedy: "Start `precast serve` with this --data-dir and database. It sends the journals, and can then be stopped.",
  };
}

function brokenFinding({ folder, journals }: JournalFacts): Found | null {
  const broken = journals.filter((journal) => journal.broken);
  if (broken.length === 0) return null;
  return {
    subject: `${folder}: broken journals`,
    problem: `${describe(broken)} with lines that could not be read. All other lines are counted.`,
    gain: "No counts are lost unnoticed.",
    remedy: "Find the cause (a full disk or a manual edit, for example), then delete the files that end in .broken.",
  };
}

function unreadFinding({ folder, refusal }: JournalFacts): Found | null {
  if (refusal === null) return null;
  return {
    kind: "information",
    subject: `${folder}: cannot be read`,
    problem: `It was not checked for journals that no server sends: the system refuses to read it (${refusal}).`,
    gain: "Unsent and broken journals are reported.",
    remedy: "Run `precast doctor` as the user of the server.",
  };
}

function describe(journals: readonly Journal[]): string {
  const bytes = journals.reduce((sum, journal) => sum + journal.bytes, 0);
  return `${formatCounted(journals.length, "journal")} (${formatBytes(bytes)})`;
}

function age(journals: readonly Journal[]): string {
  const minutes = Math.floor(Math.max(...journals.map((journal) => journal.minutes)));
  return minutes < 120 ? formatCounted(minutes, "minute") : formatCounted(Math.floor(minutes / 60), "hour");
}
