/**
 * Runs the checks of `precast doctor` on a database, and applies the safe fixes. A new check is defined in the file of
 * its subject, and has a line in CHECKS.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { readApps } from "../../shared/apps.ts";
import type { CommonName, Settings } from "../../shared/config.ts";
import type { Database } from "../../shared/database/database.ts";
import { DatabaseFault, isCancelled, isConflict, isReadOnly } from "../../shared/database/errors.ts";
import { sql } from "../../shared/sql/query.ts";
import { appCountsQuery } from "../../shared/sql/tree.ts";
import { formatSeconds } from "../../shared/text.ts";
import type { Terminal } from "../terminal.ts";
import { type Check, type CheckContext, canFix, type Finding, type TypeSize } from "./check.ts";
import { filtersCheck, savingsCheck, slotsCheck, timeoutsCheck } from "./content.ts";
import { indexesCheck, missingIndexesCheck, trigramsCheck } from "./indexes.ts";
import { collationsCheck, totalsCheck, triggersCheck } from "./integrity.ts";
import { batchesCheck, countsCheck, journalsCheck } from "./ledger.ts";
import { replicationCheck, serverCheck, snapshotsCheck } from "./server.ts";
import { bloatCheck, deadRowsCheck, removalsCheck, statisticsCheck } from "./tables.ts";

// Runs every check on a database. A new check needs a file in checks/ and a line in CHECKS.

/** In the order of the report: causes of wrong answers come first, then what slows down every live query. */
const CHECKS: readonly Check[] = [
  collationsCheck,
  triggersCheck,
  totalsCheck,
  statisticsCheck,
  indexesCheck,
  missingIndexesCheck,
  trigramsCheck,
  snapshotsCheck,
  replicationCheck,
  deadRowsCheck,
  bloatCheck,
  countsCheck,
  serverCheck,
  timeoutsCheck,
  slotsCheck,
  filtersCheck,
  savingsCheck,
  journalsCheck,
  batchesCheck,
  removalsCheck,
];

export type CheckFinding = Finding & { readonly check: string };

type DoctorSettings = Settings<CommonName | "connections" | "workers">;

/** Runs all checks, or those that `names` names. */
export async function runChecks(
  database: Database,
  settings: DoctorSettings,
  now: Date,
  names: readonly string[] = CHECKS.map(({ name }) => name),
): Promise<CheckFinding[]> {
  const { dataDir, connections, workers } = settings;
  const types = await readTypes(database, settings);
  const context: CheckContext = { database, types, dataDir, connections, workers, now };
  const found: CheckFinding[] = [];
  for (const { name, findings } of CHECKS.filter((check) => names.includes(check.name))) {
    found.push(...(await findings(context)).map((finding) => ({ check: name, ...finding })));
  }
  return found;
}

async function readTypes(database: Database, settings: DoctorSettings): Promise<TypeSize[]> {
  const apps = await readApps(database, settings);
  const rows = await database.query(appCountsQuery(apps.map(({ key }) => key)));
  const counts = new Map(rows.map(([key, slug, count]) => [`${key}/${slug}`, Number(count)]));
  return apps.flatMap((app) =>
    app.types.map((type) => ({ app, type, entries: counts.get(`${app.key}/${type.slug}`) ?? 0 })),
  );
}

// Applies the safe fixes: runs the statements of the findings and reports each of them.

type FixResult = { readonly fixed: readonly CheckFinding[]; readonly left: readonly CheckFinding[] };

/** Runs the named checks again, which tells whether a fix has helped. */
type CheckAgain = (names: readonly string[]) => Promise<readonly CheckFinding[]>;

/**
 * Warns of a statement that fails or does not help, and keeps its finding in `left`. Throws a DatabaseFault when the
 * database is unavailable, and its error when the database is read-only.
 */
export async function applyFixes(
  database: Database,
  findings: readonly CheckFinding[],
  terminal: Terminal,
  checkAgain: CheckAgain,
): Promise<FixResult> {
  const fixed: CheckFinding[] = [];
  for (const finding of findings) {
    if (canFix(finding) && (await runAll(database, finding.fix, terminal))) fixed.push(finding);
  }
  if (fixed.length === 0) return { fixed, left: findings };
  await awaitStatistics(database);
  const again = await checkAgain([...new Set(fixed.map(({ check }) => check))]);
  const remains = (finding: CheckFinding) => again.find((one) => isSame(one, finding));
  for (const { subject } of fixed.filter(remains))
    terminal.warn(`${subject}: the fix was applied and did not help. Something else has to change first.`);
  terminal.say("");
  return {
    fixed: fixed.filter((finding) => remains(finding) === undefined),
    left: findings.flatMap((finding) => (fixed.includes(finding) ? (remains(finding) ?? []) : finding)),
  };
}

function isSame(one: CheckFinding, other: CheckFinding): boolean {
  return one.check === other.check && one.subject === other.subject;
}

/** The first version of PostgreSQL that shows at once what has been counted (`server_version_num`). */
const PROMPT_STATISTICS = 150_000;
/** Milliseconds: older versions show counts that are up to half a second old. */
const STATISTICS_AGE = 600;

/** Waits until the statistics include the fixes: the next `precast doctor` would find again what was just fixed. */
async function awaitStatistics(database: Database): Promise<void> {
  const [row] = await database.query(sql("SELECT current_setting('server_version_num')"));
  if (Number(row?.[0]) < PROMPT_STATISTICS) await sleep(STATISTICS_AGE);
}

async function runAll(database: Database, statements: readonly string[], terminal: Terminal): Promise<boolean> {
  for (const statement of statements) {
    const start = performance.now();
    try {
      await database.execute(statement);
    } catch (error) {
      if (error instanceof DatabaseFault && !isConflict(error) && !isCancelled(error)) throw error;
      if (isReadOnly(error)) throw error;
      terminal.warn(`${statement}: failed, ${error instanceof Error ? error.message : String(error)}`);
      return false;
    }
    terminal.say(`${statement}: done in ${formatSeconds((performance.now() - start) / 1_000)}`);
  }
  return true;
}
